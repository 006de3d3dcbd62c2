"""What a command writes: which lines are passed on as they come, and what is kept of them."""

from __future__ import annotations

import sys

import pytest

from bargein.processes import run_command
from bargein.tools import OutputLimits

pytestmark = pytest.mark.proof

WRITER = """
import os, sys, time
for piece in sys.argv[1:]:
    os.write(1, piece.encode("utf-8", "surrogateescape"))
    time.sleep(0.002)
"""


async def heard(*pieces: str, limits: OutputLimits | None = None) -> tuple[str, list[str]]:
    """Let a command write pieces; return what is kept of them, and what was passed on."""
    said: list[str] = []
    result = await run_command(
        [sys.executable, "-c", WRITER, *pieces],
        output=lambda stream, text: said.append(text),
        limits=limits or OutputLimits(),
    )
    return result.output["stdout"], said


@pytest.mark.parametrize(
    ("pieces", "kept"),
    [
        ([], ""),
        (["abc"], "abc"),
        (["abcd", "efg"], "abcdefg"),
        (["abcdefghij"], "abcd\n[3 characters left out]\nhij"),
        (["ab", "cdef", "g", "hij"], "abcd\n[3 characters left out]\nhij"),
        (["abc\n", *(["x"] * 100), "end"], "abc\n[100 characters left out]\nend"),
    ],
)
async def test_head_and_tail_are_kept(pieces, kept):
    """An output longer than head and tail loses its middle, and says how much."""
    assert (await heard(*pieces, limits=OutputLimits(head=4, tail=3)))[0] == kept


@pytest.mark.parametrize(("head", "tail"), [(0, 3), (3, 0), (0, 0)])
async def test_either_part_may_be_empty(head, tail):
    """A head or a tail of 0 keeps nothing."""
    kept, _ = await heard("abcdefghij", limits=OutputLimits(head=head, tail=tail))
    gap = f"[{10 - head - tail} characters left out]\n"
    assert kept == ("abc\n" if head else "") + gap + ("hij" if tail else "")


async def test_lines_are_whole_whatever_the_pieces_are():
    """A line and a character that come in pieces are passed on whole; the rest is at the end."""
    data = "eins\nzwölf €\n\nrest".encode()
    bytewise = (data[i : i + 1].decode("utf-8", "surrogateescape") for i in range(len(data)))
    _, said = await heard(*bytewise)
    assert "".join(said) == data.decode()
    assert said[-1] == "rest"
    assert all(text.endswith("\n") for text in said[:-1])


async def test_lines_that_come_together_are_passed_on_together():
    """Several lines of one piece are one text; invalid bytes are replaced."""
    _, said = await heard("a\nb\udcff\nc")
    assert said == ["a\nb\N{REPLACEMENT CHARACTER}\n", "c"]


async def test_a_line_without_end_does_not_grow_without_end():
    """A line longer than the limit is passed on in pieces."""
    _, said = await heard(*["x" * 10_000] * 30, limits=OutputLimits(live=1_000_000))
    assert len(said) > 1
    assert max(map(len, said)) < 200_000
    assert len("".join(said)) == 300_000
