"""The Python of the README runs, and says what it says."""

import re
from pathlib import Path


def test_the_five_lines_run():
    text = (Path(__file__).parent.parent / "README.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    found = {}
    exec(code, found)
    assert found["intervals"].shape == (92, 2)
    assert found["model"].guarantee_.startswith("Exact")
