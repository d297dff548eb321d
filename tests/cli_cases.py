"""Tables that tests of the command line share."""

import numpy as np


def rows(n, *, with_target=True, seed=0, columns=2):
    """A table as text: columns a, b, ..., kind, and y."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, columns)).round(4)
    kinds = np.array(["low", "middle", "top"])[rng.integers(0, 3, size=n)]
    y = (np.sin(X[:, 0]) + (kinds == "top") + 0.2 * rng.normal(size=n)).round(4)
    names = [chr(ord("a") + i) for i in range(columns)]
    lines = [",".join([*names, "kind"] + ["y"] * with_target)]
    for row, kind, label in zip(X.tolist(), kinds, y.tolist(), strict=True):
        lines.append(",".join([*map(str, row), kind] + [str(label)] * with_target))
    return "\n".join(lines) + "\n"
