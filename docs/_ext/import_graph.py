"""The import graph of the package: read from its source and drawn in layers for ``docs/architecture.md``.

``python docs/_ext/import_graph.py`` brings the picture up to date; ``tests/test_architecture.py`` checks that it is,
and that imports only go down.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "conformal_gp"
PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "figures" / "imports.svg"

# Parts of the package from the ground up: a package, or a module beside the packages. Each imports only from the layers
# below it.
LAYERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Types", ("arrays",)),
    ("Columns of frames", ("encoding",)),
    ("Ground", ("threads", "validation", "files", "formatting")),
    ("Target, data sets, training range", ("targets", "datasets", "extrapolation")),
    ("Rows", ("rows",)),
    ("Mathematics", ("gp", "conformal")),
    ("Pipelines, Dask", ("pipeline", "dask_rows")),
    ("The waist", ("answers",)),
    ("Models", ("models", "metrics")),
    ("Groups, calibration rows", ("groups", "calibration")),
    ("Predictions", ("predictions",)),
    ("Distributions, explanations", ("distributions", "explanation", "inverse", "arrivals")),
    ("The estimator", ("regressor",)),
    ("The package", ("conformal_gp",)),
    ("Evaluation", ("evaluation",)),
    ("Uses of a model", ("adapters", "plotting", "saving", "testing")),
    ("Drift", ("drift",)),
    ("Report", ("report",)),
    ("The command", ("cli",)),
    ("python -m", ("__main__",)),
)

Graph = dict[str, set[str]]


def modules(package: Path = PACKAGE) -> dict[str, Path]:
    """File of each module, by its dotted name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = (package.name, *path.relative_to(package).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(package: Path = PACKAGE) -> Graph:
    """Modules of the package that each of its modules imports, anywhere in its file."""
    files = modules(package)
    graph: Graph = {}
    for name, path in files.items():
        graph[name] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                wanted = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                whole = [f"{node.module}.{alias.name}" for alias in node.names]
                wanted = [module if module in files else node.module for module in whole]
            else:
                continue
            graph[name].update(module for module in wanted if module in files)
    return graph


def part(module: str) -> str:
    """The part that a module belongs to.

    >>> part("conformal_gp.gp.posterior"), part("conformal_gp.rows"), part("conformal_gp")
    ('gp', 'rows', 'conformal_gp')
    """
    return [*module.split("."), module][1]


def part_graph(graph: Mapping[str, Iterable[str]]) -> Graph:
    """Parts that each part imports from."""
    parts: Graph = {part(module): set() for module in graph}
    for module, wanted in graph.items():
        parts[part(module)].update({part(other) for other in wanted} - {part(module)})
    return parts


def layer_of() -> dict[str, int]:
    """Number of each part's layer, from the ground up."""
    return {name: number for number, (_, parts) in enumerate(LAYERS) for name in parts}


def direct(graph: Graph) -> Graph:
    """The graph without the arrows that a longer way implies, and without those that go up, which are an error."""
    layer = layer_of()
    graph = {name: {other for other in others if layer[other] < layer[name]} for name, others in graph.items()}
    beyond: Graph = {}
    for name in TopologicalSorter(graph).static_order():
        beyond[name] = set(graph[name]).union(*(beyond[other] for other in graph[name]))
    return {name: {o for o in others if not any(o in beyond[p] for p in others)} for name, others in graph.items()}


def _label(name: str) -> str:
    if name == "conformal_gp":
        return "__init__.py"
    return f"{name}/" if (PACKAGE / name).is_dir() else f"{name}.py"


def picture(parts: Graph) -> str:
    """The parts as boxes in their layers, with arrows to what they import; implied arrows are left out."""
    width, height, row, left, wide = 92, 26, 62, 160, 900
    place = {}
    for number, (_, names) in enumerate(reversed(LAYERS)):
        step = (wide - left) / len(names)
        shift = 60 * (number % 3 - 1) if len(names) == 1 else 0  # or arrows would pass behind boxes
        for i, name in enumerate(names):
            place[name] = (left + (i + 0.5) * step + shift, 24 + number * row)
    tall = 24 + (len(LAYERS) - 1) * row + height
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {tall + 4}" font-family="sans-serif" '
        'font-size="12">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#666"/></marker></defs>',
        f'<rect width="{wide}" height="{tall + 4}" fill="#fff"/>',
    ]
    arrows = direct(parts)
    for name in sorted(arrows):
        for other in sorted(arrows[name]):
            (x, y), (to_x, to_y) = place[name], place[other]
            drawn.append(
                f'<line x1="{x:.0f}" y1="{y + height / 2:.0f}" x2="{to_x:.0f}" y2="{to_y - height / 2 - 1:.0f}" '
                'stroke="#999" marker-end="url(#tip)"/>'
            )
    for number, (title, names) in enumerate(reversed(LAYERS)):
        drawn.append(f'<text x="4" y="{28 + number * row}" fill="#444" font-style="italic">{title}</text>')
        for name in names:
            x, y = place[name]
            drawn.append(
                f'<rect x="{x - width / 2:.0f}" y="{y - height / 2:.0f}" width="{width}" height="{height}" rx="4" '
                'fill="#eef3fa" stroke="#3b6ea5"/>'
                f'<text x="{x:.0f}" y="{y + 4:.0f}" text-anchor="middle">{_label(name)}</text>'
            )
    return "\n".join([*drawn, "</svg>", ""])


def main() -> None:
    """Write the picture."""
    PICTURE.write_text(picture(part_graph(imports())))


if __name__ == "__main__":
    main()
