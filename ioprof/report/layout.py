"""Plain text that keeps to a width: paragraphs, rows of a table, and names cut in the middle."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

WIDTH = 79
_GAP = "  "


def shorten(text: str, width: int) -> str:
    """`text` in at most `width` characters, its middle left out: both ends of a path tell most."""
    if len(text) <= width:
        return text
    if width < 3:
        return text[:width]
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def paragraph(text: str, *, first: str = "", rest: str | None = None) -> list[str]:
    """Lines of `text`, none over WIDTH: wrapped at blanks, longer words cut in their middle."""
    indent = " " * len(first) if rest is None else rest
    room = WIDTH - max(len(first), len(indent))
    words = " ".join(shorten(one_line(word), room) for word in text.split())
    lines = textwrap.wrap(
        words,
        WIDTH,
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines or [first.rstrip()]


def one_line(text: str) -> str:
    """`text` with what would move the cursor or end the line made visible."""
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> list[str]:
    """Aligned rows under a header: `left` columns to the left, the others to the right.

    When the table is wider than WIDTH its first column is shortened, then the last.
    """
    cells = [list(map(one_line, row)) for row in (header, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    for column in (0, len(header) - 1):
        over = sum(widths) + len(_GAP) * (len(widths) - 1) - WIDTH
        if over > 0:
            widths[column] = max(widths[column] - over, len(header[column]), 8)
    return [_row(row, widths, left) for row in cells]


def _row(row: Sequence[str], widths: Sequence[int], left: int) -> str:
    cells = [
        shorten(cell, width).ljust(width) if i < left else shorten(cell, width).rjust(width)
        for i, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return _GAP.join(cells).rstrip()
