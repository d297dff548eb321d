"""Words and lines of the pages: vocabulary, length of sentences, semicolons, width of code and output."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from printed import FENCE, PAGES, ROOT

MOST_WORDS_A_SENTENCE = 20
MOST_SEMICOLONS = 8  # in a thousand words
MOST_COLUMNS = 88
CODE = {"python", "shell", "console", "text", "{code-block}"}

# Words of the paper, of older versions, or of nobody, and what the pages say instead.
PRIVATE_WORDS = {
    r"labels?": "target, true value",
    r"rank(ed|ing)? rows|ranked": "calibration rows",
    r"design rows|design=": "tuning rows",
    r"(?<!out[ -]of[ -])bags?": "augmented set",
    r"(intervals?|regions?|sets?|levels?) holds?": "cover, contain",
    r"\d+%( of [\w ]+)? (inside|outside)|labels? (inside|outside)": "covered, missed",
    r"warps?|warped|maps? of the (labels|target)": "target transformation",
    r"plain (process|GP)|the process|processes' bars": "standard GP, GP",
    r"scatters?|scattered": "variability, varies",
    r"beyond the training rows": "outside the training range",
    r"(both|the|its|their|two|one|infinite) ends": "endpoints, lower and upper bounds",
    r"promises?|promise kept": "guarantee, nominal level",
    r"training tables?": "training set",
    r"besides|but for|beside|by itself|by themselves|anew|alike|of its own|mend|mends": "plainer words",
    r"(each|one|none|some|all|most) of which|of whose": "two sentences",
}
THEORY = ("theory", "glossary", "computation")  # the paper's words are explained there
PROJECT_PAGES = [ROOT / name for name in ("CONTRIBUTING.md", "SUPPORT.md", "SECURITY.md", "RELEASING.md")]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def name(path: Path) -> str:
    """Name of a page in the repository."""
    return str(path.relative_to(ROOT))


def without_code(text: str) -> str:
    """The page without blocks of code, formulas, comments, addresses of links, and words in code quotes."""
    text = re.sub(r"<!-- walk: start -->.*?end -->", "", text, flags=re.DOTALL)  # docstrings of the code
    text = FENCE.sub("\n\n", text)
    text = re.sub(r"^(?: {4}\S.*\n)+", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"<!--.*?-->|</?[a-z][^>]*>", " ", text, flags=re.DOTALL)
    text = re.sub(r"\$\$.*?\$\$", " F ", text, flags=re.DOTALL)
    text = re.sub(r"\$[^$]+\$", " F ", text)
    text = re.sub(r"\{\w+\}`[^`]*`|`[^`]*`", " C ", text)
    text = re.sub(r"\]\([^)]*\)|\]\[[^]]*\]", "]", text)
    return re.sub(r"^:::+.*$|^\+\+\+.*$|^:[\w-]+:.*$", "", text, flags=re.MULTILINE)


def sentences(page: Path) -> list[str]:
    """Sentences of paragraphs and lists: no headings, no tables."""
    text = without_code(page.read_text())
    lines = ["" if line.lstrip().startswith(("#", "|")) else line for line in text.splitlines()]
    blocks = re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.) ", "\n".join(lines))
    found = [part for block in blocks for part in re.split(r"(?<=[.!?:])[\s*_)\]\"]+(?=\S)", " ".join(block.split()))]
    return [sentence for sentence in found if len(words(sentence)) > 1]


def words(text: str) -> list[str]:
    """Words of a text."""
    return re.findall(r"[^\W_][\w'.,%-]*", text)


def prose_of_an_example(path: Path) -> str:
    """Docstring and comments of a script of the gallery."""
    lines = path.read_text().splitlines()
    return "\n".join(line.lstrip("# ") for line in lines if line.lstrip().startswith("#")) + lines[1]


@pytest.mark.parametrize("page", [*PAGES, *PROJECT_PAGES, *EXAMPLES], ids=name)
def test_private_words_stay_in_the_theory(page: Path):
    if page.stem.startswith(THEORY):
        return
    text = prose_of_an_example(page) if page.suffix == ".py" else without_code(page.read_text())
    text = " ".join(text.split())
    for pattern, better in PRIVATE_WORDS.items():
        found = re.search(rf"\b(?:{pattern})(?!\w)", text, flags=re.IGNORECASE)
        if found is not None:
            where = text[max(found.start() - 60, 0) : found.end() + 60]
            pytest.fail(f"{found[0]!r} in {where!r}: say {better}")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_sentences_are_short(page: Path):
    lengths = [len(words(sentence)) for sentence in sentences(page)]
    mean = sum(lengths) / len(lengths)
    assert mean <= MOST_WORDS_A_SENTENCE, f"{mean:.1f} words a sentence"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_semicolons_are_few(page: Path):
    text = without_code(page.read_text())
    count = text.count(";")
    assert count <= max(1, MOST_SEMICOLONS * len(words(text)) / 1000), f"{count} in {len(words(text))} words"


@pytest.mark.parametrize("page", [*PAGES, *PROJECT_PAGES], ids=name)
def test_code_and_output_fit_a_screen(page: Path):
    for block in FENCE.finditer(page.read_text()):
        if block["info"].partition(" ")[0] not in CODE:
            continue
        long = [line for line in block["body"].splitlines() if len(line) > MOST_COLUMNS]
        assert not long, long[0]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_diagrams_fit_a_screen(page: Path):
    text = FENCE.sub("", page.read_text())
    indented = re.findall(r"^ {4}(\S.*| {4,}\S.*)$", text, flags=re.MULTILINE)
    assert max(map(len, indented), default=0) <= MOST_COLUMNS


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent.name == "docs"], ids=name)
def test_a_page_opens_with_what_one_can_do_afterwards(page: Path):
    if page.stem != "index":
        assert page.read_text().split("\n\n")[1].startswith("After this page ")


def test_the_patterns_find_what_they_should():
    text = "Labels of ranked rows; 95% inside. The process, besides, is plain."
    found = [pattern for pattern in PRIVATE_WORDS if re.search(rf"\b(?:{pattern})(?!\w)", text, flags=re.IGNORECASE)]
    assert len(found) == 5
