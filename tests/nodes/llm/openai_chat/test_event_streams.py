"""Server-sent events, however they are written and however the network cuts them."""

from __future__ import annotations

import httpx2
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from bargein.llm import ChatModelError, HttpLimits, OpenAIChat, TextDelta

from .asking import ASK

A, B = (b'{"choices": [{"delta": {"content": "%s"}}]}' % text for text in (b"a", b"b"))
ODD = " é: \x85\u2028 "
"""Characters that end a line elsewhere, and not here."""

DONE = b"data: [DONE]\n\n"


class Chunks(httpx2.AsyncBaseTransport, httpx2.AsyncByteStream):
    """A network that answers with these pieces."""

    def __init__(self, chunks: list[bytes]) -> None:
        self.chunks = chunks

    async def handle_async_request(self, request):
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=self)

    async def __aiter__(self):
        for chunk in self.chunks:
            yield chunk


def read(*chunks: bytes) -> tuple[list[str], str]:
    """Return the texts of an answer that comes in these pieces, and its error."""
    texts: list[str] = []

    async def ask() -> str:
        network = Chunks(list(chunks))
        limits = HttpLimits(attempts=1)
        model = OpenAIChat("m", base_url="http://model.test/v1", transport=network, limits=limits)
        try:
            async for piece in model.stream(ASK):
                if isinstance(piece, TextDelta):
                    texts.append(piece.text)
        except ChatModelError as error:
            return str(error)
        return ""

    error = trio.run(ask)
    return texts, error


@pytest.mark.parametrize(
    ("stream", "texts"),
    [
        (b"data: " + A + b"\n\ndata: " + B + b"\n\n", ["a", "b"]),
        (b"data: " + A + b"\r\n\r\ndata: " + B + b"\r\n\r\n", ["a", "b"]),
        (b"data: " + A + b"\r\rdata: " + B + b"\r\r", ["a", "b"]),
        (b"data:" + A + b"\n\n", ["a"]),
        (b"data:  " + A + b"\n\n", ["a"]),
        (b"data: " + A[:12] + b"\ndata: " + A[12:] + b"\n\n", ["a"]),
        (b": comment\n\n: another\ndata: " + A + b"\n\n", ["a"]),
        (b"event: x\nid: 1\nretry: 5\n\n", []),
        (b"event: x\ndata: " + A + b"\nid: 1\n\n", ["a"]),
        (b"\xef\xbb\xbfdata: " + A + b"\n\n", ["a"]),
        (b"\n\n\ndata: " + A + b"\n\n\n", ["a"]),
        (
            b"data: " + A.replace(b'"a"', '" é: \x85\u2028 "'.encode()) + b"\n\n",
            [" é: \x85\u2028 "],
        ),
    ],
)
def test_events_come_out_whole(stream, texts) -> None:
    """Each event is one piece, in order, also where the network delivers byte by byte."""
    assert read(stream, DONE) == (texts, "")
    assert read(*(bytes([byte]) for byte in stream), DONE) == (texts, "")


@given(
    st.lists(st.sampled_from([b"data", b":", b" ", b"\r", b"\n", A, B, b"\r\n", b"\n\n"])),
    st.data(),
)
def test_cuts_make_no_difference(parts, data) -> None:
    """How the network cuts a stream changes neither its texts nor its error."""
    stream = b"".join(parts)
    cut = data.draw(st.integers(0, len(stream)))
    assert read(stream[:cut], stream[cut:]) == read(stream)


def test_an_end_in_mid_event() -> None:
    """Whole lines that only miss the blank line after them count, half a line does not."""
    whole, _ = read(b"data: " + A + b"\n")
    half, _ = read(b"data: " + A + b"\n\ndata: " + B)
    assert (whole, half) == (["a"], ["a"])


@pytest.mark.parametrize("line", [b"data: " + b"x" * 4096, b"data: " + b"x" * 4095 + b"\n"])
def test_an_event_without_end_is_an_error(line) -> None:
    """An event of more than 4 MiB raises, whether it is one line or many."""
    texts, error = read(*[line] * 1030)
    assert texts == []
    assert "exceeds" in error
