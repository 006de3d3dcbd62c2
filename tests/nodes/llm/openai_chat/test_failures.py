"""A server that refuses, breaks off or sends what cannot be read."""

from __future__ import annotations

import httpx2
import pytest
import structlog
import trio

from bargein.llm import AnswerProgress, ChatModelError, HttpLimits, OpenAIChat, TextDelta

from .asking import ASK, chat, collect, text_of


async def test_busy_server_is_asked_again(server) -> None:
    """A request is retried after status 429, and the log does not quote it."""

    async def script(x) -> None:
        if len(server.requests) == 1:
            await x.refuse(
                "429 Too Many", b'{"error": {"message": "slow down"}}', "retry-after: 0\r\n"
            )
        else:
            await x.answer("ok")

    server.script = script
    model = chat(server)
    async with model.open():
        with structlog.testing.capture_logs() as logs:
            assert text_of(await collect(model.stream(ASK))) == "ok"
    (entry,) = logs
    assert (entry["event"], entry["vendor"], entry["attempt"]) == ("vendor_asked_again", "tiny", 1)
    assert "HTTP status 429" in entry["error"]
    assert "555" not in repr(logs)


async def test_refusal_is_raised_at_once(server) -> None:
    """Status 401 is not worth another try; the error says what the server said."""
    server.script = lambda x: x.refuse("401 No", b'{"error": {"message": "bad key"}}')
    model = chat(server)
    async with model.open():
        with pytest.raises(ChatModelError, match=r"'tiny'.*401.*'bad key'") as caught:
            await collect(model.stream(ASK))
    assert (caught.value.status, caught.value.retryable) == (401, False)
    assert len(server.requests) == 1


@pytest.mark.parametrize("body", [b"", b"<html>", b'"text"', b'{"detail": "x"}', b"\xff"])
async def test_refusal_without_a_known_body(server, body) -> None:
    """The error has the status of a refusal, whatever its body contains."""
    server.script = lambda x: x.refuse("500 Oh no", body)
    model = chat(server, attempts=2)
    async with model.open():
        with pytest.raises(ChatModelError, match="500") as caught:
            await collect(model.stream(ASK))
    assert (caught.value.status, caught.value.retryable) == (500, True)
    assert len(server.requests) == 2


async def test_disconnect_before_the_first_token(server) -> None:
    """A connection that breaks before the first token costs another try, not the answer."""

    async def script(x) -> None:
        match len(server.requests):
            case 1:
                await x.stream.aclose()
            case 2:
                await x.begin()
                await x.event({"choices": [{"delta": {"role": "assistant", "content": ""}}]})
                await x.stream.aclose()
            case _:
                await x.answer("ok")

    server.script = script
    model = chat(server)
    async with model.open():
        assert text_of(await collect(model.stream(ASK))) == "ok"
    assert len(server.requests) == 3


@pytest.mark.parametrize("how", ["torn", "ended"])
async def test_disconnect_mid_stream(server, how) -> None:
    """An answer that breaks off raises after what came, and is not asked for again."""

    async def script(x) -> None:
        await x.begin()
        await x.text("half an ")
        await x.event(
            {"choices": [{"delta": {"tool_calls": [{"id": "a", "function": {"name": "pay"}}]}}]}
        )
        if how == "ended":
            await x.raw(b"0\r\n\r\n")
        await x.stream.aclose()

    server.script = script
    model = chat(server)
    pieces = []
    async with model.open():
        with pytest.raises(ChatModelError, match="broke") as caught:  # noqa: PT012
            async for piece in model.stream(ASK):
                pieces.append(piece)
    assert pieces == [TextDelta("half an "), AnswerProgress("tool_call", "pay")]
    assert caught.value.retryable
    assert len(server.requests) == 1
    if how == "torn":
        assert isinstance(caught.value.__cause__, httpx2.HTTPError)


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"data: {half\n\n", "not what chat completions send"),
        (b'data: {"choices": 5}\n\n', "choices"),
        (b"data: " + b"x" * (5 << 20), "exceeds"),
    ],
)
async def test_malformed_chunk(server, data, match) -> None:
    """An invalid chunk ends the answer with an error that says so."""

    async def script(x) -> None:
        await x.begin()
        await x.text("a")
        await x.part(data)
        await x.until_eof()

    server.script = script
    model = chat(server)
    async with model.open():
        answer = model.stream(ASK)
        assert await anext(answer) == TextDelta("a")
        with pytest.raises(ChatModelError, match=match):
            await anext(answer)


@pytest.mark.parametrize(
    ("error", "status", "retryable"),
    [
        ({"message": "no", "code": 429}, 429, True),
        ({"message": "no", "type": "server_error", "code": None}, None, True),
        ({"message": "no", "type": "invalid_request_error"}, None, False),
        ("no", None, False),
    ],
)
async def test_error_in_the_stream(server, error, status, retryable) -> None:
    """An error object in the middle of an answer is raised, with what it tells."""

    async def script(x) -> None:
        await x.begin()
        await x.text("a")
        await x.event({"error": error})

    server.script = script
    model = chat(server)
    async with model.open():
        answer = model.stream(ASK)
        assert await anext(answer) == TextDelta("a")
        with pytest.raises(ChatModelError, match="'no'") as caught:
            await anext(answer)
    assert (caught.value.status, caught.value.retryable) == (status, retryable)


async def test_no_server() -> None:
    """Where nothing listens, the error names the address after as many attempts as set."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    await listeners[0].aclose()
    limits = HttpLimits(attempts=2, first_wait_s=0.01)
    model = OpenAIChat("m", base_url=f"http://user:password@127.0.0.1:{port}", limits=limits)
    with structlog.testing.capture_logs() as logs:
        with pytest.raises(ChatModelError, match="cannot connect") as caught:
            await collect(model.stream(ASK))
        await model.prewarm()
    assert caught.value.detail.startswith(f"http://127.0.0.1:{port}: ")
    assert "127.0.0.1" not in caught.value.safe_text  # callers may read it
    assert isinstance(caught.value.__cause__, httpx2.ConnectError)
    assert [entry["event"] for entry in logs] == ["vendor_asked_again", "llm_prewarm_failed"]
