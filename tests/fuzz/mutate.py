"""Damage texts as kernels, torn reads and versions to come may damage them, and see what a parser
makes of it."""

import random
from collections.abc import Callable, Collection, Iterable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

_EXAMPLES = 100
_MUTANTS = 100
"""Of each example: 10,000 in all."""
_PIECES = (
    b"", b" ", b"\n", b"\t", b":", b"0", b"-1", b"18446744073709551615", b"99999999999999999999999",
    b"nan", b"inf", b"N/A", b"\x00", b"\xff\xfe", b"1e308", b"(unknown)", b"=", b"samples",
    b"[usec]",    b"{", b"}", b'"', b"<", b">", b"\xe2\x80\xa8",
)  # fmt: skip


def mutant(text: bytes, dice: random.Random) -> bytes:
    """`text` cut, spliced, doubled, shuffled or sprinkled: one to four times."""
    for _ in range(dice.randint(1, 4)):
        text = dice.choice(_DAMAGES)(text, dice)
    return text


def _cut(text: bytes, dice: random.Random) -> bytes:
    return text[: dice.randint(0, len(text))]


def _drop(text: bytes, dice: random.Random) -> bytes:
    start = dice.randint(0, len(text))
    return text[:start] + text[start + dice.randint(0, 40) :]


def _insert(text: bytes, dice: random.Random) -> bytes:
    at = dice.randint(0, len(text))
    return text[:at] + dice.choice(_PIECES) + text[at:]


def _replace_word(text: bytes, dice: random.Random) -> bytes:
    words = text.split(b" ")
    words[dice.randrange(len(words))] = dice.choice(_PIECES)
    return b" ".join(words)


def _flip(text: bytes, dice: random.Random) -> bytes:
    if not text:
        return text
    at = dice.randrange(len(text))
    return text[:at] + bytes([dice.randrange(256)]) + text[at + 1 :]


def _double_line(text: bytes, dice: random.Random) -> bytes:
    lines = text.split(b"\n")
    lines.insert(dice.randrange(len(lines) + 1), dice.choice(lines))
    return b"\n".join(lines)


def _shuffle_lines(text: bytes, dice: random.Random) -> bytes:
    lines = text.split(b"\n")
    dice.shuffle(lines)
    return b"\n".join(lines)


_DAMAGES = (_cut, _drop, _insert, _replace_word, _flip, _double_line, _shuffle_lines)


def survives(
    parse: Callable[[bytes], object],
    samples: Iterable[bytes],
    *,
    errors: tuple[type[Exception], ...] = (),
    keys: Callable[[Any], Collection[str]] | None = None,
    allowed: Collection[str] = (),
) -> None:
    """Feed `parse` 10,000 mutants of the samples.

    It may raise `errors` and nothing else. With `keys`, the names that it makes of a mutant must
    be among `allowed`.
    """
    originals = list(samples)
    known = set(allowed)

    @settings(
        max_examples=_EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(min_value=0, max_value=2**63))
    def run(seed: int) -> None:
        dice = random.Random(seed)
        for _ in range(_MUTANTS):
            text = mutant(dice.choice(originals), dice)
            try:
                made = parse(text)
            except errors:
                continue
            if keys is not None:
                wrong = set(keys(made)) - known
                assert not wrong, f"{wrong} made of {text!r}"

    run()
