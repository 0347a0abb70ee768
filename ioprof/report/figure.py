"""One drawn figure, ready to be written or inlined."""

from __future__ import annotations

import msgspec


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A picture with one message.

    `name` is the file's stem, `title` the message as a sentence, `caption` says n, window and
    what the numbers rest on, `alt` says in words what a reader who cannot see it would miss.
    """

    name: str
    title: str
    caption: str
    alt: str
    png: bytes
    svg: bytes
