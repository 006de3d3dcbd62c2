"""What a process writes: lines, bounds, descriptors."""

from __future__ import annotations

import os

import pytest
import trio

from bargein.nodes.processes import Excerpt, Tap


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], ""),
        (["abc"], "abc"),
        (["abcd", "efg"], "abcdefg"),
        (["abcdefghij"], "abcd\n[3 characters left out]\nhij"),
        (["ab", "cdef", "g", "hij"], "abcd\n[3 characters left out]\nhij"),
        (["abc\n", *(["x"] * 1000), "end"], "abc\n[1000 characters left out]\nend"),
    ],
)
async def test_an_excerpt_keeps_head_and_tail(texts, expected):
    """A text longer than head and tail loses its middle, and says how much."""
    excerpt = Excerpt(head=4, tail=3)
    for text in texts:
        excerpt.add(text)
    assert str(excerpt) == expected
    assert excerpt.left_out == max(0, len("".join(texts)) - 7)


@pytest.mark.parametrize(("head", "tail"), [(0, 3), (3, 0), (0, 0)])
async def test_either_part_may_be_empty(head, tail):
    """A head or a tail of 0 keeps nothing."""
    excerpt = Excerpt(head, tail)
    excerpt.add("abcdefghij")
    assert excerpt.left_out == 10 - head - tail
    gap = f"[{excerpt.left_out} characters left out]\n"
    assert str(excerpt) == ("abc\n" if head else "") + gap + ("hij" if tail else "")


async def heard(*pieces: bytes) -> tuple[list[str], list[str]]:
    """Write pieces to a tap; return what it passes on as they come, and what at their end."""
    ours, theirs = os.pipe()
    said: list[str] = []
    tap = Tap(ours, said.append)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(tap.run)
        for piece in pieces:
            os.write(theirs, piece)
            await trio.testing.wait_all_tasks_blocked()
        os.close(theirs)
    count = len(said)
    tap.drain()
    tap.close()
    return said[:count], said[count:]


async def test_lines_are_whole_whatever_the_pieces_are():
    """A line and a character that come in pieces are passed on whole; the rest is at the end."""
    data = "eins\nzwölf €\n\nrest".encode()
    lines, rest = await heard(*(data[i : i + 1] for i in range(len(data))))
    assert (lines, rest) == (["eins\n", "zwölf €\n", "\n"], ["rest"])


async def test_lines_that_come_together_are_passed_on_together():
    """Several lines of one read are one text; invalid bytes are replaced."""
    lines, rest = await heard(b"a\nb\xff\nc")
    assert (lines, rest) == (["a\nb\N{REPLACEMENT CHARACTER}\n"], ["c"])


async def test_a_line_without_end_does_not_grow_without_end():
    """A line longer than the limit is passed on in pieces."""
    lines, rest = await heard(*[b"x" * 10_000] * 30)
    assert len(lines) > 1
    assert max(map(len, lines)) < 200_000
    assert len("".join(lines + rest)) == 300_000


async def test_a_tap_reads_until_the_other_side_is_closed():
    """What is written comes out as lines; the end of the pipe ends run()."""
    ours, theirs = os.pipe()
    said: list[str] = []
    tap = Tap(ours, said.append)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(tap.run)
        os.write(theirs, b"one\ntw")
        await trio.testing.wait_all_tasks_blocked()
        assert said == ["one\n"]
        os.close(theirs)
    tap.drain()
    assert said == ["one\n", "tw"]
    tap.close()
    tap.close()


async def test_a_tap_goes_on_reading_while_it_is_cancelled():
    """A process that is being stopped is still heard, until the tap is closed."""
    ours, theirs = os.pipe()
    said: list[str] = []
    tap = Tap(ours, said.append)
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tap.run)
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                await trio.testing.wait_all_tasks_blocked()
                os.write(theirs, b"goodbye\n")
                await trio.testing.wait_all_tasks_blocked()
            assert said == ["goodbye\n"]
            tap.close()
    os.close(theirs)


async def test_draining_takes_what_is_there_and_does_not_wait():
    """drain() reads all that was written so far, and nothing where nothing is."""
    ours, theirs = os.pipe()
    said: list[str] = []
    tap = Tap(ours, said.append)
    tap.drain()
    os.write(theirs, b"x" * 60_000)
    tap.drain()
    assert sum(map(len, said)) == 60_000
    tap.close()
    os.close(theirs)
