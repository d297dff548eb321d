"""The parts of the benchmark, each of which runs in a process of its own: ``python -m benchmarks.scale.parts NAME``."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.scale.choices import choices
from benchmarks.scale.rivals import RIVALS, SIZES, compare
from benchmarks.scale.size import in_memory, out_of_core

SIZE_PARTS = {
    "ten-thousand": partial(in_memory, 10**4),
    "hundred-thousand": partial(in_memory, 10**5),
    "million": partial(in_memory, 10**6),
    "ten-million": partial(out_of_core, 10**7),
}
CHOICE_PARTS = {f"choices-{data}": partial(choices, data) for data in ("smooth", "rough", "flights")}
RIVAL_PARTS = {
    f"rivals-{data}-{number}": partial(compare, data, rival) for data in SIZES for number, rival in enumerate(RIVALS)
}
PARTS: dict[str, Callable[[], dict[str, Any]]] = {**SIZE_PARTS, **CHOICE_PARTS, **RIVAL_PARTS}


def main() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        print(json.dumps(PARTS[sys.argv[1]]()))


if __name__ == "__main__":
    main()
