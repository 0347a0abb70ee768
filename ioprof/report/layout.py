"""Plain text that keeps to a width: paragraphs, rows of a table, and names cut in the middle."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

WIDTH = 79
_GAP = "  "
_GLUE = "\N{NO-BREAK SPACE}"
_BEFORE_UNIT = re.compile(
    r"(?<=\d) (?=(?:%|[kMGTP]?i?B(?:/s)?|[mµ]?s|min|samples/s)(?:\W|$))|(?<=\bAU) (?=\d)"
)
_NARROWEST = 4


def shorten(text: str, width: int) -> str:
    """`text` in at most `width` characters, its middle left out: both ends of a path tell most."""
    if len(text) <= width:
        return text
    if width < 3:
        return text[:width]
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def paragraph(text: str, *, first: str = "", rest: str | None = None) -> list[str]:
    """Lines of `text`, none over WIDTH: wrapped at blanks, longer words cut in their middle.

    A number stays on the line of its unit.
    """
    indent = " " * len(first) if rest is None else rest
    room = WIDTH - max(len(first), len(indent))
    lines = textwrap.wrap(
        " ".join(shorten(word, room) for word in words(text)),
        WIDTH,
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_GLUE, " ") for line in lines] or [first.rstrip()]


def words(text: str) -> list[str]:
    """The words of a text, cleaned for one line; a number and its unit are one word, glued by a
    no-break space."""
    clean = " ".join(one_line(word) for word in text.split())
    return _BEFORE_UNIT.sub(_GLUE, clean).split(" ")


def glued(text: str) -> str:
    """`text` with every number tied to its unit by a no-break space."""
    return " ".join(words(text))


def one_line(text: str) -> str:
    """`text` with what would move the cursor or end the line made visible."""
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, align: str) -> list[str]:
    """Rows under a header, columns aligned by one letter each: "lrrl" is left, right, right, left.

    A table wider than WIDTH has its first column shortened, then its last, then the others.
    """
    cells = [list(map(one_line, row)) for row in (header, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    for column in (0, len(header) - 1, *range(1, len(header) - 1)):
        over = sum(widths) + len(_GAP) * (len(widths) - 1) - WIDTH
        if over > 0:
            widths[column] = max(widths[column] - over, min(_NARROWEST, widths[column]))
    return [_row(row, widths, align) for row in cells]


def _row(row: Sequence[str], widths: Sequence[int], align: str) -> str:
    cells = [
        shorten(cell, width).ljust(width) if side == "l" else shorten(cell, width).rjust(width)
        for cell, width, side in zip(row, widths, align, strict=True)
    ]
    return _GAP.join(cells).rstrip()
