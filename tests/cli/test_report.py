"""``conformal-gp report``."""

import html
import json
import re

FAST = ("--tuning", "holdout", "--folds", "3")


def test_report(command_line):
    header, *lines = command_line.rows(30).replace("a,b,kind,y", "<script>alert(1)</script>,b,kind,y").splitlines()
    lines[4] = "," + lines[4].split(",", 1)[1]
    path = command_line.write("odd.csv", "\n".join([header, *lines]))
    page = command_line("report", path, "-t", "y", "-o", "-", *FAST, "--missing", "drop").stdout
    assert page.lstrip().lower().startswith("<!doctype html")
    assert "<script>alert(1)" not in page
    shown = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])["rows"]
    assert sorted(int(row["row"]) for row in shown) == [i for i in range(2, 32) if i != 6]  # as in the file
    command_line("report", path, "-t", "y", "-o", "r.html", *FAST, "--missing", "drop", "-q")
    written = (command_line.folder / "r.html").read_text(encoding="utf-8")
    assert written.replace("-o r.html", "-o -").replace(" -q<", "<").strip() == page.strip()
    facts = html.unescape(page[page.index("<footer>") :])
    assert "odd.csv" in facts
    assert "left out" in facts
    assert "conformal-gp report" in facts
    assert "--missing drop" in facts
