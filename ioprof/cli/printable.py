"""Text from a filesystem or another program, made safe for a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """`text` without what a terminal would obey: names of files and processes may hold it."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )
