"""What the project says of itself agrees: versions, workflows, targets of the Makefile, links."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import conformal_gp

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_one_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert newest is not None
    assert citation["version"] == newest[1] == conformal_gp.__version__
    assert citation["license"] == PROJECT["license"]


def test_help_names_every_target():
    makefile = (ROOT / "Makefile").read_text()
    explained = set(re.findall(r"^([a-z-]+):.*## \S", makefile, flags=re.MULTILINE))
    phony = re.search(r"^\.PHONY: ((?:.*\\\n)*.*)$", makefile, flags=re.MULTILINE)
    assert phony is not None
    assert explained == TARGETS == set(phony[1].replace("\\", " ").split())


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_only_call_the_makefile(path):
    for job in yaml.safe_load(path.read_text())["jobs"].values():
        matrix = job.get("strategy", {}).get("matrix", {})
        wanted = {*matrix.get("target", ()), *(row["target"] for row in matrix.get("include", ()))}
        assert wanted <= TARGETS
        for step in job["steps"]:
            if "run" in step:
                command, target = step["run"].split()
                assert command == "make"
                assert target in TARGETS or (target == '"$TARGET"' and wanted)
            else:
                assert re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", step["uses"])


def test_workflows_run_every_python_that_is_declared():
    declared = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert PROJECT["requires-python"] == f">={declared[0]}"
    matrix = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())["jobs"]["make"]["strategy"][
        "matrix"
    ]
    assert matrix["python"] == declared
    lowest = next(row for row in matrix["include"] if row["target"] == "test-lowest")
    assert lowest["python"] == declared[0]


def test_pages_about_the_project_link_to_files_that_exist():
    for page in ROOT.glob("*.md"):
        links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
        assert not [link for link in links if not (ROOT / link).exists()], page.name
