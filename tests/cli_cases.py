"""Tables that tests of the command line share."""

import numpy as np
import pandas as pd


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


def noisy_tables(command_line):
    """Rows with a column v of known noise variances; tables of 60 of them, and of the others without labels."""
    rng = np.random.default_rng(0)
    a, v = rng.uniform(0, 3, 70), rng.choice([0.01, 0.4], 70)
    frame = pd.DataFrame({"a": a, "v": v, "y": np.sin(2 * a) + np.sqrt(v) * rng.standard_normal(70)})
    train = command_line.write("noisy.csv", frame[:60].to_csv(index=False))
    return frame, train, command_line.write("noisy-new.csv", frame[60:][["a", "v"]].to_csv(index=False))
