"""Imports go down only, from room to room and without cycles; the page that draws them is up to date."""

from __future__ import annotations

from graphlib import TopologicalSorter

import import_graph
import pytest


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    return import_graph.imports()


def test_every_room_has_a_layer(imports):
    listed = [name for _, names in import_graph.LAYERS for name in names]
    assert sorted(listed) == sorted(import_graph.room_graph(imports))


def test_imports_go_down(imports):
    layer = import_graph.layer_of()
    upward = [
        f"{module} imports {other}"
        for module, wanted in imports.items()
        for other in wanted
        if (here := import_graph.room(module)) != (there := import_graph.room(other)) and layer[there] >= layer[here]
    ]
    assert not upward


def test_no_module_imports_itself_by_a_detour(imports):
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the cycle


def test_the_page_is_up_to_date(imports):
    rooms = import_graph.room_graph(imports)
    text = import_graph.PAGE.read_text()
    advice = "run: python docs/_ext/import_graph.py"
    assert import_graph.page(text, rooms) == text, advice
    assert import_graph.PICTURE.read_text() == import_graph.picture(rooms), advice
