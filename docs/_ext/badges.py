"""The README's badges: pictures drawn from ``pyproject.toml``, which need no server.

Run as ``python docs/_ext/badges.py``; a test checks that they are up to date.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "figures" / "badges"
CHARACTER = 6.6  # pixels, of a sans serif of 11 pixels, rather too much than too little

TEMPLATE = """<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" height="20"
 aria-label="{label}: {value}">
<title>{label}: {value}</title>
<clipPath id="r"><rect width="{width}" height="20" rx="3"/></clipPath>
<g clip-path="url(#r)"><rect width="{left}" height="20" fill="#555"/>
<rect x="{left}" width="{right}" height="20" fill="#0b6e99"/></g>
<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="{label_at}" y="14">{label}</text><text x="{value_at}" y="14">{value}</text></g>
</svg>
"""


def facts() -> dict[str, tuple[str, str]]:
    """Label and value of each badge, by file name."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = settings["project"]
    pythons = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    version = re.search(r'__version__ = "(.+)"', (ROOT / settings["tool"]["hatch"]["version"]["path"]).read_text())
    assert version is not None
    return {
        "version": ("version", version[1]),
        "python": ("Python", f"{pythons[0]} to {pythons[-1]}"),
        "licence": ("licence", project["license"]),
    }


def picture(label: str, value: str) -> str:
    """A badge as SVG."""
    left, right = (round(CHARACTER * len(text)) + 12 for text in (label, value))
    return TEMPLATE.format(
        label=label,
        value=value,
        left=left,
        right=right,
        width=left + right,
        label_at=left / 2,
        value_at=left + right / 2,
    )


def main() -> None:
    """Write the badges."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, (label, value) in facts().items():
        (FOLDER / f"{name}.svg").write_text(picture(label, value))


if __name__ == "__main__":
    main()
