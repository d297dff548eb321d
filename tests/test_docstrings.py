"""Every public function, class and method shows an example; that examples run is what doctest checks."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

API = Path(__file__).parents[1] / "docs" / "api.rst"
NEED_EXTRAS = {"skpro"}  # extras that the tests do not ask for
PUBLIC = sorted(set(re.findall(r"^   ((?:\w+\.)*\w+)$", API.read_text(), flags=re.MULTILINE)))


def module_of(name: str) -> ModuleType | None:
    """The module that holds a name of the reference; None if it needs an extra that is not installed."""
    parent = name.rpartition(".")[0]
    try:
        return import_module(f"conformal_gp.{parent}" if parent else "conformal_gp")
    except ImportError:
        if parent in NEED_EXTRAS:
            return None
        raise


def documented(thing: Any) -> Iterator[tuple[str, str]]:
    """A function, or a class and its own public methods, with their docstrings."""
    if inspect.isfunction(thing) or inspect.isclass(thing):
        yield thing.__qualname__, thing.__doc__ or ""
    simple = is_dataclass(thing) or (inspect.isclass(thing) and issubclass(thing, Enum))  # one example for all
    for name in dir(thing) if inspect.isclass(thing) and not simple else ():
        member = inspect.getattr_static(thing, name)
        method = getattr(member, "__func__", member)  # of a class method
        if not name.startswith("_") and inspect.isfunction(method) and method.__module__.startswith("conformal_gp"):
            yield method.__qualname__, method.__doc__ or ""


@pytest.mark.parametrize("name", PUBLIC)
def test_there_is_an_example(name):
    module = module_of(name)
    if module is None:
        pytest.skip(f"needs an extra of conformal_gp.{name}")
    missing = [qualname for qualname, text in documented(getattr(module, name.rpartition(".")[2])) if ">>>" not in text]
    assert not missing
