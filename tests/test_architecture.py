"""Imports go down only and without cycles, files are short, and the page about them is up to date."""

from __future__ import annotations

import re
from graphlib import TopologicalSorter

import import_graph
import pytest
import walk

# Files that a default fit and predict_interval may pass through.
MOST_FILES = 21
MOST_LINES = {"src": 400, "tests": 500, "reproduction": 500, "benchmarks": 500}


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    return import_graph.imports()


def test_every_part_has_a_layer(imports):
    listed = [name for _, names in import_graph.LAYERS for name in names]
    assert sorted(listed) == sorted(import_graph.part_graph(imports))


def test_imports_go_down(imports):
    layer = import_graph.layer_of()
    upward = [
        f"{module} imports {other}"
        for module, wanted in imports.items()
        for other in wanted
        if (here := import_graph.part(module)) != (there := import_graph.part(other)) and layer[there] >= layer[here]
    ]
    assert not upward


def test_no_module_imports_itself_by_a_detour(imports):
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the cycle


def test_the_picture_is_up_to_date(imports):
    picture = import_graph.picture(import_graph.part_graph(imports))
    assert import_graph.PICTURE.read_text() == picture, "run: python docs/_ext/import_graph.py"


def test_the_default_path_is_short():
    assert len(walk.files_used(*walk.WALKS[1])) <= MOST_FILES


@pytest.mark.slow
def test_the_walk_is_up_to_date():
    text = import_graph.PAGE.read_text()
    assert walk.page(text) == text, "run: python docs/_ext/walk.py"


def test_the_page_names_files_that_exist():
    text = import_graph.PAGE.read_text()
    named = set(re.findall(r"`([\w/]+\.py)`", text))
    assert named
    folders = (import_graph.PACKAGE, import_graph.ROOT)
    assert not [file for file in named if not any((folder / file).exists() for folder in folders)]


@pytest.mark.parametrize("folder", MOST_LINES)
def test_no_file_is_long(folder):
    files = list((import_graph.ROOT / folder).rglob("*.py"))
    assert len(files) > 20
    assert not [path for path in files if len(path.read_text().splitlines()) > MOST_LINES[folder]]


def test_private_modules_of_sklearn_are_imported_in_one_place():
    private = re.compile(r"^\s*(?:from|import) sklearn\S*\._", flags=re.MULTILINE)
    found = [path.name for path in import_graph.PACKAGE.rglob("*.py") if private.search(path.read_text())]
    assert found == ["regressor.py"]
