"""Every public function, class and method shows an example; that examples run is what doctest checks."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

API = Path(__file__).parents[1] / "docs" / "api.rst"
PUBLIC = sorted(set(re.findall(r"^   ((?:\w+\.)*\w+)$", API.read_text(), flags=re.MULTILINE)))


def found(name: str) -> Any:
    """What the reference calls by this name."""
    module, _, last = name.rpartition(".")
    return getattr(import_module(f"conformal_gp.{module}" if module else "conformal_gp"), last)


def documented(thing: Any) -> Iterator[tuple[str, str]]:
    """A function, or a class and its own public methods, with their docstrings."""
    if inspect.isfunction(thing) or inspect.isclass(thing):
        yield thing.__qualname__, thing.__doc__ or ""
    for name in dir(thing) if inspect.isclass(thing) else ():
        member = inspect.getattr_static(thing, name)
        method = getattr(member, "__func__", member)  # of a class method
        if not name.startswith("_") and inspect.isfunction(method) and method.__module__.startswith("conformal_gp"):
            yield method.__qualname__, method.__doc__ or ""


@pytest.mark.parametrize("name", PUBLIC)
def test_there_is_an_example(name):
    missing = [qualname for qualname, text in documented(found(name)) if ">>>" not in text]
    assert not missing


def test_the_reference_lists_every_public_name():
    modules = {name.rpartition(".")[0] for name in PUBLIC}
    assert len(modules) > 9
    listed = {id(found(name)) for name in PUBLIC}
    absent = [
        f"{module}.{name}"
        for module in modules - {""}
        for name in import_module(f"conformal_gp.{module}").__all__
        if callable(found(f"{module}.{name}")) and id(found(f"{module}.{name}")) not in listed
    ]
    assert not absent
