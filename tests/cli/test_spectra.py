"""Tables with many more columns than rows: channels of a spectrum, under numeric names."""

import numpy as np
import pandas as pd


def spectra(n_rows, n_channels, seed=0):
    """Smooth channels that a few factors explain."""
    rng = np.random.default_rng(seed)
    channels = np.linspace(0, 1, n_channels)
    shapes = np.exp(-0.5 * ((channels - rng.uniform(size=(3, 1))) / 0.1) ** 2)
    factors = rng.normal(size=(n_rows, 3))
    frame = pd.DataFrame((1 + factors @ shapes).round(5), columns=[f"{1100 + 2 * j}" for j in range(n_channels)])
    frame.insert(0, "sample", [f"S{i:02d}" for i in range(n_rows)])
    return frame.assign(moisture=(10 + 2 * factors[:, 0] + 0.1 * rng.normal(size=n_rows)).round(3))


def test_spectra(command_line):
    table = spectra(28, 300)
    table.iloc[:24].to_csv("spectra.csv", index=False)
    table.iloc[24:].drop(columns="moisture").to_csv("new.csv", index=False)
    found = command_line.json("evaluate", "spectra.csv", "-t", "moisture", "--folds", 2, "-c", "80%")
    assert len(found["inputs"]) == 300
    run = command_line("predict", "spectra.csv", "new.csv", "-t", "moisture", "-c", "80%")
    predicted = run.stdout.splitlines()
    assert predicted[1].startswith("S24,")
    assert predicted[0].endswith("moisture_mean,moisture_lower_80,moisture_upper_80,moisture_beyond_training")
