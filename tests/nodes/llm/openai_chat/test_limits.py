"""Limits of time, and retries with their times."""

from __future__ import annotations

from collections.abc import Callable

import httpx2
import pytest
import trio

from bargein.llm import ChatModelError, ChatModelTimeoutError, OpenAIChat, TextDelta

from .asking import ASK, limited, text_of


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
    arguments = limited({"random": lambda: 1.0, **kwargs})
    return OpenAIChat("m", base_url="http://model.test/v1", transport=script, **arguments)


async def test_first_token_limit(autojump_clock) -> None:
    """The limit for the first token counts from the request; pings and roles are not tokens."""
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
    """The limit between tokens restarts with each token, and pings do not extend it."""
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


async def test_waits_are_never_below_half(autojump_clock) -> None:
    """Chance takes at most half of each wait away, so that a server is never asked at once."""
    script = Script(*[refused(429)] * 4)
    model = timed_chat(script, attempts=4, first_wait_s=1.0, max_wait_s=3.0, random=lambda: 0.0)
    with pytest.raises(ChatModelError, match="429"):
        await anext(model.stream(ASK))
    assert script.at_s == [0, 0.5, 1.5, 3]


async def test_many_attempts_wait_the_longest_time(autojump_clock) -> None:
    """However many attempts are allowed, the doubling overflows nothing."""
    script = Script(*[refused(429)] * 1100)
    model = timed_chat(script, attempts=1100, first_wait_s=1.0, max_wait_s=1.0)
    with pytest.raises(ChatModelError, match="429"):
        await anext(model.stream(ASK))
    assert script.at_s[-1] == 1099


NOW = "Sat, 21 Nov 2026 10:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({}, 1),
        ({"retry_after": ""}, 1),
        ({"retry_after": " 1.5 "}, 1.5),
        ({"retry_after": "0"}, 1),
        ({"retry_after": "8"}, 8),
        ({"retry_after": "-3"}, 1),
        ({"retry_after": "soon"}, 1),
        ({"retry_after": "soon", "date": NOW}, 1),
        ({"retry_after": NOW}, 1),
        ({"retry_after": "Sat, 21 Nov 2026 09:00:00 GMT", "date": NOW}, 1),
    ],
)
async def test_a_wish_that_cannot_be_read_is_none(autojump_clock, headers, wait_s) -> None:
    """Where a server asks for nothing, or for nothing that can be read, the own wait counts."""
    script = Script(refused(429, **headers), streamed(token("a"), DONE))
    model = timed_chat(script, first_wait_s=1.0, max_wait_s=8.0)
    assert text_of([piece async for piece in model.stream(ASK)]) == "a"
    assert script.at_s == [0, wait_s]


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
