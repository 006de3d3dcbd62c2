"""`OpenAIChat` against a real server on loopback, and in virtual time without one."""

from __future__ import annotations

import gc
import json
from collections.abc import AsyncIterator, Callable

import httpx2
import pytest
import structlog
import trio

from nodes.llm import (
    AnswerProgress,
    ChatModel,
    ChatModelError,
    ChatModelTimeoutError,
    OpenAIChat,
    TextDelta,
    ToolCallRequest,
    Usage,
)

ASK = [{"role": "user", "content": "my number is 555 0100"}]
LIMIT_S = 5.0


def chat(server, **kwargs) -> OpenAIChat:
    """A model at the test's server."""
    return OpenAIChat("tiny", base_url=server.url, api_key="k", first_wait_s=0.01, **kwargs)


async def collect(answer) -> list:
    """All pieces of an answer, within a limit."""
    with trio.fail_after(LIMIT_S):
        return [piece async for piece in answer]


def text_of(pieces) -> str:
    """The text of an answer."""
    return "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))


# --- a whole answer -------------------------------------------------------------------------------


async def test_streams_text_then_usage(server) -> None:
    """An answer is its text, as it comes, and one Usage at the end."""
    server.script = lambda x: x.answer("Hel", "lo", "!")
    model = chat(server, options={"temperature": 0.1, "stream_options": None})
    assert isinstance(model, ChatModel)
    async with model.open():
        pieces = await collect(model.stream(ASK, tools=[{"type": "function"}]))
    assert pieces == [
        TextDelta("Hel"),
        TextDelta("lo"),
        TextDelta("!"),
        Usage(7, 3, None, "stop"),
    ]
    sent = server.requests[0]
    assert sent.head.startswith("POST /v1/chat/completions")
    assert "authorization: bearer k" in sent.head.lower()
    assert sent.body == {
        "model": "tiny",
        "messages": ASK,
        "stream": True,
        "tools": [{"type": "function"}],
        "temperature": 0.1,
    }


async def test_tokens_come_as_they_are_sent(server) -> None:
    """A token is yielded when it arrives, not when the answer is complete."""
    go_on = trio.Event()

    async def script(x) -> None:
        await x.begin()
        await x.text("first")
        await go_on.wait()
        await x.text("second")
        await x.finish()

    server.script = script
    model = chat(server)
    async with model.open():
        answer = model.stream(ASK)
        with trio.fail_after(LIMIT_S):
            assert await anext(answer) == TextDelta("first")
        go_on.set()
        assert text_of(await collect(answer)) == "second"


async def test_connection_is_used_again(server) -> None:
    """Whole answers, refusals that were read and prewarm all leave their connection to the next."""

    async def script(x) -> None:
        if x.head.startswith("HEAD"):
            await x.refuse("404 Not Found")
        elif len(server.requests) == 2:
            await x.refuse("503 Busy", b"{}")
        else:
            await x.answer("ok")

    server.script = script
    model = chat(server)
    async with model.open():
        with trio.fail_after(LIMIT_S):
            await model.prewarm()
        assert server.connections == 1
        for _ in range(2):
            assert text_of(await collect(model.stream(ASK))) == "ok"
    assert server.connections == 1
    assert len(server.requests) == 4


async def test_tool_calls_in_pieces(server) -> None:
    """Tool calls are put together from their pieces and yielded once the answer is whole."""

    def piece(index, **call):
        return {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": index, **call}]}}]}

    async def script(x) -> None:
        await x.begin()
        await x.text("One moment. ")
        await x.event(piece(0, id="a", function={"name": "add", "arguments": ""}))
        await x.event(piece(0, function={"arguments": '{"item": "la'}))
        await x.event(piece(1, id="b", function={"name": "pay", "arguments": "{oops"}))
        await x.event(piece(0, function={"arguments": 'tte"}'}))
        await x.finish("tool_calls")

    server.script = script
    model = chat(server)
    async with model.open():
        pieces = await collect(model.stream(ASK))
    assert pieces == [
        TextDelta("One moment. "),
        AnswerProgress("tool_call", "add"),
        AnswerProgress("tool_call", "pay"),
        ToolCallRequest("a", "add", {"item": "latte"}, '{"item": "latte"}'),
        ToolCallRequest("b", "pay", None, "{oops"),
        Usage(7, 3, None, "tool_calls"),
    ]


async def test_what_the_model_is_at_is_told_at_once(server) -> None:
    """Reasoning and the call of a tool are told with their first piece, before they are whole."""
    go_on = trio.Event()

    async def script(x) -> None:
        await x.begin()
        await x.event({"choices": [{"index": 0, "delta": {"reasoning": "Hm"}}]})
        function = {"name": "add", "arguments": "{"}
        call = {"index": 0, "id": "a", "function": function}
        await x.event({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
        await go_on.wait()
        call = {"index": 0, "function": {"arguments": "}"}}
        await x.event({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
        await x.finish("tool_calls")

    server.script = script
    model = chat(server)
    async with model.open():
        answer = model.stream(ASK)
        with trio.fail_after(LIMIT_S):
            assert await anext(answer) == AnswerProgress("thinking")
            assert await anext(answer) == AnswerProgress("tool_call", "add")
        go_on.set()
        pieces = await collect(answer)
    assert pieces == [ToolCallRequest("a", "add", {}, "{}"), Usage(7, 3, None, "tool_calls")]


async def test_answer_that_is_not_streamed(server) -> None:
    """A server that ignores `stream` is understood all the same."""
    body = json.dumps(
        {
            "choices": [
                {
                    "message": {
                        "content": "Hi.",
                        "tool_calls": [{"id": "t", "function": {"name": "f", "arguments": "{}"}}],
                    },
                    "finish_reason": "stop",
                }
            ],
            "usage": {"prompt_tokens": 1, "completion_tokens": 2},
        }
    ).encode()
    server.script = lambda x: x.refuse("200 OK", body, "content-type: application/json\r\n")
    model = chat(server)
    async with model.open():
        pieces = await collect(model.stream(ASK))
    assert pieces == [
        TextDelta("Hi."),
        AnswerProgress("tool_call", "f"),
        ToolCallRequest("t", "f", {}, "{}"),
        Usage(1, 2, None, "stop"),
    ]


async def test_odd_event_streams(server) -> None:
    """Comments, CR LF, data over several lines and a missing last blank line are all understood."""

    async def script(x) -> None:
        await x.begin()
        await x.part(b": hold the line\r\n\r\nevent: message\r\ndata: {\r\n")
        await x.part(b'data: "choices": [{"delta": {"content": "caf')
        await x.part("é".encode()[:1])
        await x.part("é".encode()[1:] + b'"}, "finish_reason": "stop"}]}\r\n\r')
        await x.part(b"\ndata: [DONE]\n")
        await x.raw(b"0\r\n\r\n")

    server.script = script
    model = chat(server)
    async with model.open():
        assert await collect(model.stream(ASK)) == [TextDelta("café"), Usage(finish_reason="stop")]


async def test_server_that_keeps_the_stream_open(server) -> None:
    """An answer ends with its last event, also when the server forgets to end the message."""

    async def script(x) -> None:
        await x.begin()
        await x.text("ok")
        await x.part(b"data: [DONE]\n\n")
        await x.until_eof()

    server.script = script
    model = chat(server)
    async with model.open():
        assert text_of(await collect(model.stream(ASK))) == "ok"


# --- refused, broken, malformed -------------------------------------------------------------------


async def test_busy_server_is_asked_again(server) -> None:
    """After status 429 the question is sent again, and nothing of it is logged but the fact."""

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
    assert (entry["event"], entry["status"], entry["attempt"]) == ("llm_retry", 429, 1)
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
    """Whatever stands in the body of a refusal, its status is told."""
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
    """A chunk that is none ends the answer with an error that says so."""

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
    """Where nothing listens, the error says so and keeps the cause, after as many tries as set."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    await listeners[0].aclose()
    model = OpenAIChat("m", base_url=f"http://127.0.0.1:{port}", attempts=2, first_wait_s=0.01)
    with structlog.testing.capture_logs() as logs:
        with pytest.raises(ChatModelError, match="cannot connect") as caught:
            await collect(model.stream(ASK))
        await model.prewarm()
    assert isinstance(caught.value.__cause__, httpx2.ConnectError)
    assert [entry["event"] for entry in logs] == ["llm_retry", "llm_prewarm_failed"]


# --- cut ------------------------------------------------------------------------------------------


async def no_answer(x) -> None:
    """Take the question, and be silent."""
    await x.until_eof()


async def hang_after_head(x) -> None:
    """Begin, and be silent."""
    await x.begin()
    await x.until_eof()


async def hang_after_two(x) -> None:
    """Send two tokens, and be silent."""
    await x.begin()
    await x.text("a")
    await x.text("b")
    await x.until_eof()


async def busy_for_long(x) -> None:
    """Ask for patience."""
    await x.refuse("503 Busy", b"{}", "retry-after: 7\r\n")


async def hang_in_body(x) -> None:
    """Promise a body that never comes."""
    await x.raw(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n")
    await x.until_eof()


@pytest.mark.parametrize(
    "script", [no_answer, hang_after_head, hang_after_two, hang_in_body, busy_for_long]
)
async def test_cancel_closes_the_connection(server, script) -> None:
    """Cancelling the reader's scope in any phase is seen by the server at once."""
    eof = trio.Event()

    async def noticed(x) -> None:
        await script(x)
        eof.set()

    server.script = noticed
    model = chat(server)
    async with model.open():
        with trio.fail_after(LIMIT_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(collect, model.stream(ASK))
                while not server.requests:  # noqa: ASYNC110 (seen by a test only)
                    await trio.sleep(0.01)
                await trio.sleep(0.05)
                nursery.cancel_scope.cancel()
            if script is not busy_for_long:  # a refusal is read to its end: nothing is left to cut
                await eof.wait()
                await server.all_closed()
        server.script = lambda x: x.answer("and on")
        assert text_of(await collect(model.stream(ASK))) == "and on"


async def break_loop(answer) -> None:
    """Leave the loop, as most people do."""
    async for _ in answer:
        break


async def close(answer) -> None:
    """Close it by hand."""
    await anext(answer)
    await answer.aclose()
    await answer.aclose()


async def with_block(answer) -> None:
    """Leave its block by an error."""
    with pytest.raises(KeyError):  # noqa: PT012 (the block is what is tested)
        async with answer:
            await anext(answer)
            raise KeyError


async def close_when_cancelled(answer) -> None:
    """Close it inside of a scope that is cancelled."""
    with trio.CancelScope() as scope:
        async with answer:
            await anext(answer)
            scope.cancel()


async def generator_over_it(answer) -> None:
    """Drop a generator of one's own that reads it."""

    async def texts() -> AsyncIterator[str]:
        async for piece in answer:
            yield piece.text

    generator = texts()
    assert await anext(generator) == "a"
    await generator.aclose()


@pytest.mark.parametrize(
    "leave", [break_loop, close, with_block, close_when_cancelled, generator_over_it]
)
async def test_leaving_closes_the_connection(server, leave) -> None:
    """However an answer is left, the server sees the end at once, and nothing warns."""
    eof = trio.Event()

    async def script(x) -> None:
        await hang_after_two(x)
        eof.set()

    server.script = script
    model = chat(server)
    async with model.open():
        with trio.fail_after(LIMIT_S):
            await leave(model.stream(ASK))
            await eof.wait()
            await server.all_closed()
        gc.collect()


async def test_lazy_pool_closes_with_the_run(server) -> None:
    """Without `open` the pool closes when the run ends, and the model works in the next run."""
    server.script = lambda x: x.answer("ok")
    model = chat(server)
    done: list[str] = []

    def one_run() -> None:
        async def main() -> None:
            done.append(text_of(await collect(model.stream(ASK))))

        trio.run(main)

    with trio.fail_after(LIMIT_S):
        await trio.to_thread.run_sync(one_run)
        await trio.to_thread.run_sync(one_run)
        await server.all_closed()
    assert done == ["ok", "ok"]
    assert server.connections == 2


# --- limits, in virtual time ----------------------------------------------------------------------


class Script(httpx2.AsyncBaseTransport):
    """Answers each request with what the next function returns."""

    def __init__(self, *answers: Callable[[], object]) -> None:
        self.answers = list(answers)
        self.at_s: list[float] = []
        self.started_s = trio.current_time()

    async def handle_async_request(self, request):
        """Note when it was asked, and answer."""
        self.at_s.append(round(trio.current_time() - self.started_s, 6))
        answer = self.answers.pop(0)()
        return await answer if hasattr(answer, "__await__") else answer


class Timed(httpx2.AsyncByteStream):
    """A body in which numbers are pauses."""

    def __init__(self, *items: bytes | float) -> None:
        self.items = items

    async def __aiter__(self):
        for item in self.items:
            if isinstance(item, bytes):
                yield item
            else:
                await trio.sleep(item)


def token(text: str) -> bytes:
    """One event."""
    return b'data: {"choices": [{"delta": {"content": "%s"}}]}\n\n' % text.encode()


def streamed(*items: bytes | float) -> Callable[[], httpx2.Response]:
    """An event stream with pauses."""
    return lambda: httpx2.Response(200, stream=Timed(*items))


def refused(status: int, **headers: str) -> Callable[[], httpx2.Response]:
    """A refusal."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda: httpx2.Response(status, headers=named, stream=Timed(b"{}"))


DONE = b"data: [DONE]\n\n"
PING = b": ping\n\n"


def timed_chat(script: Script, **kwargs) -> OpenAIChat:
    """A model with the script as its network and a jitter of none."""
    kwargs = {"random": lambda: 1.0, **kwargs}
    return OpenAIChat("m", base_url="http://model.test/v1", transport=script, **kwargs)


async def test_first_token_limit(autojump_clock) -> None:
    """The limit for the first token counts from the request; pings and roles are no tokens."""
    role = b'data: {"choices": [{"delta": {"role": "assistant"}}]}\n\n'
    script = Script(streamed(1.0, PING, 1.0, role, 1.0, PING, 9.0))
    model = timed_chat(script, first_token_timeout_s=4.0)
    start = trio.current_time()
    with pytest.raises(ChatModelTimeoutError, match="first_token_timeout_s") as caught:
        await anext(model.stream(ASK))
    assert trio.current_time() - start == pytest.approx(4.0)
    assert (caught.value.phase, caught.value.retryable) == ("first_token", True)
    assert script.at_s == [0]


async def test_between_tokens_limit(autojump_clock) -> None:
    """The limit between tokens begins anew with each, and pings do not extend it."""
    script = Script(streamed(token("a"), 1.5, token("b"), 1.5, PING, 9.0))
    answer = timed_chat(script, between_tokens_timeout_s=2.0).stream(ASK)
    start = trio.current_time()
    assert [await anext(answer), await anext(answer)] == [TextDelta("a"), TextDelta("b")]
    with pytest.raises(ChatModelTimeoutError, match="between_tokens_timeout_s"):
        await anext(answer)
    assert trio.current_time() - start == pytest.approx(3.5)


async def test_time_of_the_reader_is_not_counted(autojump_clock) -> None:
    """A reader that takes its time between two tokens runs into no limit."""
    script = Script(streamed(token("a"), token("b"), DONE))
    model = timed_chat(script, between_tokens_timeout_s=1.0, first_token_timeout_s=1.0)
    texts = []
    async for piece in model.stream(ASK):
        await trio.sleep(60)
        texts.append(piece)
    assert text_of(texts) == "ab"


async def test_no_limits(autojump_clock) -> None:
    """None as a limit waits as long as it takes."""
    script = Script(streamed(3600.0, token("a"), 3600.0, token("b"), DONE))
    model = timed_chat(
        script,
        connect_timeout_s=None,
        first_token_timeout_s=None,
        between_tokens_timeout_s=None,
    )
    assert text_of([piece async for piece in model.stream(ASK)]) == "ab"


async def test_backoff_times(autojump_clock) -> None:
    """Waits double, are capped, and give up after as many attempts as set."""
    script = Script(*[refused(status) for status in (408, 409, 429, 500, 529)])
    model = timed_chat(script, attempts=5, first_wait_s=1.0, max_wait_s=3.0)
    with pytest.raises(ChatModelError, match="529"):
        await anext(model.stream(ASK))
    assert script.at_s == [0, 1, 3, 6, 9]


async def test_retry_after_is_honoured(autojump_clock) -> None:
    """The server's own wish counts, in seconds or as a date by its own clock."""
    script = Script(
        refused(429, retry_after="2"),
        refused(
            503,
            retry_after="Sat, 21 Nov 2026 10:00:05 GMT",
            date="Sat, 21 Nov 2026 10:00:00 GMT",
        ),
        streamed(token("a"), DONE),
    )
    model = timed_chat(script, first_wait_s=0.1)
    assert text_of([piece async for piece in model.stream(ASK)]) == "a"
    assert script.at_s == [0, 2, 7]


async def test_retry_after_that_is_too_long(autojump_clock) -> None:
    """A server that wants more patience than allowed is not asked again; the error has the time."""
    script = Script(refused(429, retry_after="60"))
    with pytest.raises(ChatModelError, match="429") as caught:
        await anext(timed_chat(script).stream(ASK))
    assert caught.value.retry_after_s == 60
    assert trio.current_time() - script.started_s == 0


async def test_connect_timeout_is_tried_again(autojump_clock) -> None:
    """A connection that does not come about in time is tried again."""

    async def slow():
        await trio.sleep(5)
        raise httpx2.ConnectTimeout("too slow")

    script = Script(slow, streamed(token("a"), DONE))
    model = timed_chat(script, first_wait_s=1.0)
    assert text_of([piece async for piece in model.stream(ASK)]) == "a"
    assert script.at_s == [0, 6]


async def test_events_of_one_read_before_an_error(autojump_clock) -> None:
    """What stands before an error in the same bytes is yielded first."""
    script = Script(streamed(token("a") + b'data: {"error": {"message": "no"}}\n\n'))
    answer = timed_chat(script).stream(ASK)
    assert await anext(answer) == TextDelta("a")
    with pytest.raises(ChatModelError, match="no"):
        await anext(answer)


@pytest.mark.parametrize("url", ["ftp://x", "nonsense", "http://"])
async def test_useless_base_url(url) -> None:
    """A base URL that cannot be used is an error that names it as the cause, without a retry."""
    with pytest.raises(ChatModelError, match="base URL") as caught:
        await anext(OpenAIChat("m", base_url=url).stream(ASK))
    assert not caught.value.retryable


# --- made -----------------------------------------------------------------------------------------


def test_settings_from_the_environment(monkeypatch) -> None:
    """Model, base URL and key come from the environment where no argument names them."""
    monkeypatch.setenv("OPENAI_MODEL", "from-env")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://env.test/v1/")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    assert repr(OpenAIChat()) == "OpenAIChat('from-env', base_url='http://env.test/v1')"
    assert OpenAIChat("mine", base_url="http://x").base_url == "http://x"


def test_settings_that_miss_something(monkeypatch) -> None:
    """What is missing is an error when the model is made, with the fix in its message."""
    for name in ("OPENAI_MODEL", "OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="OPENAI_MODEL"):
        OpenAIChat()
    with pytest.raises(ValueError, match="OPENAI_API_KEY"):
        OpenAIChat("m")
    with pytest.raises(ValueError, match="attempts is 0"):
        OpenAIChat("m", base_url="http://x", attempts=0)
