"""Links between pages lead somewhere, and first questions are answered within two clicks."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from printed import FENCE, PAGES, ROOT

PROJECT_PAGES = [ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "RELEASING.md", "SUPPORT.md")]
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)")
CARD = re.compile(r"^:link: (\S+)$", flags=re.MULTILINE)
STARTS = (ROOT / "README.md", ROOT / "docs" / "index.md")

# What people ask first: the page, the heading and the words of the answer.
QUESTIONS = {
    "is it for me": ("docs/index.md", "Is it for you?", "Use something else for time series"),
    "how many rows for 99%": ("docs/rows_and_levels.md", "The least number of rows", "99% needs 99 rows"),
    "my batches differ": ("docs/batches.md", "Do my batches differ?", "holds out whole batches"),
    "why infinite": ("docs/rows_and_levels.md", "Why is my interval infinite?", "no value can be excluded"),
    "how is this not split conformal": (
        "docs/full_conformal.md",
        "How is this different from split conformal prediction?",
        "Split conformal prediction fits the model to one part of the data",
    ),
}


def sections(page: Path) -> dict[str, str]:
    """Text of a page's sections, by heading."""
    parts = re.split(r"^#+ (.+)$", FENCE.sub("", page.read_text()), flags=re.MULTILINE)
    return {heading: " ".join(text.split()) for heading, text in zip(parts[1::2], parts[2::2], strict=True)}


def anchor(heading: str) -> str:
    """The anchor of a heading, as GitHub and MyST make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def links(page: Path) -> list[tuple[Path, str]]:
    """Files and anchors that a page of text links to."""
    text = page.read_text()
    found = [*LINK.findall(text), *((f"{name}.md", "") for name in CARD.findall(text))]
    return [(Path(os.path.normpath(page.parent / name)) if name else page, target) for name, target in found]


@pytest.mark.parametrize("page", [*PAGES, *PROJECT_PAGES], ids=lambda page: page.name)
def test_links_lead_to_pages_and_headings(page: Path):
    for file, target in links(page):
        if "gallery" in file.parts:  # written by the build
            assert file.stem == "index" or (ROOT / "examples" / f"{file.stem}.py").exists(), file
            continue
        assert file.exists(), file
        if target and file.suffix == ".md":
            assert target in [anchor(heading) for heading in sections(file)], f"{file.name}#{target}"


def test_docstrings_link_to_pages_that_exist():
    for module in (ROOT / "src").rglob("*.py"):
        text = module.read_text()
        named = [f"{name}.md" for name in re.findall(r":doc:`/(\w+)`", text)]
        named += [f"{name}.md" for name in re.findall(r"docs/(\w+)\.md", text)]
        assert all((ROOT / "docs" / name).exists() for name in named), f"{module}: {named}"


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("start", STARTS, ids=lambda start: start.name)
def test_first_questions_are_answered_within_two_clicks(start: Path, question: str):
    name, heading, answer = QUESTIONS[question]
    assert answer in sections(ROOT / name)[heading].replace("**", "")
    once = {file for file, _ in links(start) if file.suffix == ".md" and file.exists()}
    twice = {file for page in once for file, _ in links(page)}
    assert ROOT / name in {start} | once | twice


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_start_page_leads_to_the_answering_heading(question: str):
    name, heading, _ = QUESTIONS[question]
    index = ROOT / "docs" / "index.md"
    targets = {(file, target) for file, target in links(index)}
    assert ROOT / name == index or (ROOT / name, anchor(heading)) in targets or (ROOT / name, "") in targets
