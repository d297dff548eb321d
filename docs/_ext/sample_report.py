"""The report page of the start page: ``conformal-gp report`` of the cars, made when the site is built."""

from __future__ import annotations

import tempfile
from contextlib import chdir
from pathlib import Path

from sphinx.application import Sphinx

from conformal_gp.cli import run


def write(app: Sphinx, exception: Exception | None) -> None:
    """Make the report, unless the gallery's scripts are not run either."""
    if exception is not None or app.builder.name != "html" or str(app.config.plot_gallery) in ("0", "False"):
        return
    out = Path(app.outdir) / "_static" / "report.html"
    with tempfile.TemporaryDirectory() as folder, chdir(folder):  # the page names its command, without folders
        for command in (
            ["demo", "--folder", "."],
            ["report", "cars.csv", "--target", "mpg", "--folds", "5", "-q", "-o", "report.html"],
        ):
            if run(command):
                raise RuntimeError(f"conformal-gp {' '.join(command)} failed")
        out.write_bytes(Path("report.html").read_bytes())


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the report when all pages are written."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
