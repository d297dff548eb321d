"""The documentation site builds without warnings, and asks nothing of other machines."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WRITTEN_BY_THE_BUILD = shutil.ignore_patterns("gallery", "api", "__pycache__")

for package in ("sphinx", "furo", "myst_parser", "sphinx_gallery", "latex2mathml", "pandas"):
    pytest.importorskip(package, reason="the site needs the extra docs; `make docs` builds it with its examples")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built from a copy of its sources; the gallery's scripts are not run."""
    folder = tmp_path_factory.mktemp("site")
    for name in ("docs", "examples", "benchmarks", "reproduction/results"):
        shutil.copytree(ROOT / name, folder / name, ignore=WRITTEN_BY_THE_BUILD)
    shutil.copy(ROOT / "CHANGELOG.md", folder)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *sys.path])}
    options = ["-q", "-W", "--keep-going", "-D", "plot_gallery=0"]
    run = [sys.executable, "-m", "sphinx", *options, str(folder / "docs"), str(folder / "html")]
    done = subprocess.run(run, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "html"


def test_nothing_is_fetched_from_outside(site: Path):
    fetched = re.compile(
        r"""<(?:script|img|link|iframe)\b[^>]*(?:src|href)=["'](?:https?:)?//|@import|url\(["']?https?:"""
    )
    for page in [*site.rglob("*.html"), *site.rglob("*.css")]:
        assert not fetched.search(page.read_text()), page


def test_formulas_are_mathml(site: Path):
    theory = (site / "theory.html").read_text()
    assert theory.count("<math ") > 100
    assert '<span class="eqno">(1)</span>' in theory


def test_the_reference_names_attributes_and_methods(site: Path):
    page = (site / "api" / "conformal_gp.ConformalGPRegressor.html").read_text()
    assert "guarantee_" in page
    assert 'id="conformal_gp.ConformalGPRegressor.predict_interval"' in page
    assert not re.search(r"set_\w+_request|get_metadata_routing", page)
