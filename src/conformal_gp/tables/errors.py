"""Errors about tables, worded for the person who made the table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


class TableError(ValueError):
    """A file or a table that cannot be used as it is.

    Parameters
    ----------
    message : str
        What is wrong, and where.
    hint : str, default=""
        What to do about it, where the same holds for many places.
    """

    def __init__(self, message: str, hint: str = ""):
        super().__init__(f"{message} {hint}".rstrip())
        self.message = message
        self.hint = hint

    @classmethod
    def together(cls, errors: Sequence[TableError], most: int = 5) -> TableError:
        """Several errors as one, so that all can be fixed at once; each hint is given once.

        >>> print(TableError.together([TableError("No a.", "Add it."), TableError("No b.", "Add it.")]))
        No a.
        No b.
        Add it.
        """
        lines = [error.message for error in errors[:most]]
        if len(errors) > most:
            lines.append(f"{len(errors) - most} more columns have such troubles.")
        hints = dict.fromkeys(error.hint for error in errors if error.hint)
        return cls("\n".join([*lines, *hints]))


def listed(names: Iterable[str], most: int = 12) -> str:
    """Names for a sentence, cut short when there are many.

    >>> listed(["a", "b"]), listed("abcd", most=2)
    ("'a', 'b'", "'a', 'b' and 2 more")
    """
    names = list(names)
    text = ", ".join(f"'{name}'" for name in names[:most])
    return text if len(names) <= most else f"{text} and {len(names) - most} more"


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """A question that names the nearest known names, or nothing.

    >>> did_you_mean("MPG", ["mpg", "weight"])
    " Did you mean 'mpg'?"
    """
    folded = {candidate.casefold(): candidate for candidate in reversed(known)}
    near = get_close_matches(name.casefold(), list(folded), n=3, cutoff=0.55)
    return f" Did you mean {' or '.join(repr(folded[candidate]) for candidate in near)}?" if near else ""
