"""The decoder of server-sent events."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bargein.nodes.llm._sse import MAX_EVENT_BYTES, EventStreamDecoder, EventTooLargeError


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
        (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
        (b"data:a\n\n", [b"a"]),
        (b"data:  a\n\n", [b" a"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b"data\ndata:\n\n", [b"\n"]),
        (b": comment\n\n: another\ndata: a\n\n", [b"a"]),
        (b"event: x\nid: 1\nretry: 5\n\n", []),
        (b"event: x\ndata: a\nid: 1\n\n", [b"a"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"\n\n\ndata: a\n\n\n", [b"a"]),
        (b"data: a: b\n\n", [b"a: b"]),
        ("data: é \n\n".encode(), ["é ".encode()]),
        (b"data: a\x0bb\x0cc\x1c\n\n", [b"a\x0bb\x0cc\x1c"]),
        (b"data: a\n", []),
    ],
)
def test_events(stream, events) -> None:
    """Events come out whole and in order, however the stream is cut, byte by byte included."""
    assert EventStreamDecoder().feed(stream) == events
    decoder = EventStreamDecoder()
    assert [event for byte in stream for event in decoder.feed(bytes([byte]))] == events


@given(st.lists(st.sampled_from([b"data", b":", b" ", b"\r", b"\n", b"x", b"\r\n"])), st.data())
def test_cuts_make_no_difference(parts, data) -> None:
    """How the network cuts a stream makes no difference to its events."""
    stream = b"".join(parts)
    cut = data.draw(st.integers(0, len(stream)))
    whole, halves = EventStreamDecoder(), EventStreamDecoder()
    expected = whole.feed(stream) + whole.close()
    assert halves.feed(stream[:cut]) + halves.feed(stream[cut:]) + halves.close() == expected


def test_close() -> None:
    """Close gives whole lines that only miss the blank line after them, and drops half a line."""
    decoder = EventStreamDecoder()
    assert decoder.feed(b"data: a\ndata: b") == []
    assert decoder.close() == [b"a"]
    assert decoder.close() == []


@pytest.mark.parametrize("line", [b"data: " + b"x" * 4096, b"data: " + b"x" * 4095 + b"\n"])
def test_event_without_end(line) -> None:
    """An event that grows past the limit is an error, be it one line or many."""
    decoder = EventStreamDecoder()
    with pytest.raises(EventTooLargeError, match="exceeds"):  # noqa: PT012 (any of many may raise)
        for _ in range(MAX_EVENT_BYTES // 4095 + 2):
            decoder.feed(line)
