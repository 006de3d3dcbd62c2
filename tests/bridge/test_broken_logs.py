"""A log that cannot be written is nobody's error: the user's set-up of it may raise anything."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
import trio

from bargein import Call, ChatNode
from bargein.events import DTMFInput, ToolResult
from bargein.testing import ScriptedModel, calls, open_agent, open_call, words
from bargein.tools import tool


class ErrorOfTheLog(Exception):
    """What the set-up of the logs raises."""


def fail(*_: Any, **__: Any) -> Any:
    raise ErrorOfTheLog


class ClosedReader(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def to(stream: Any) -> dict[str, Any]:
    return {
        "processors": [structlog.processors.add_log_level, structlog.dev.ConsoleRenderer()],
        "logger_factory": structlog.PrintLoggerFactory(stream),
    }


def closed_stream() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


class FailingHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise ErrorOfTheLog


def standard_library() -> dict[str, Any]:
    return {
        "processors": [structlog.stdlib.add_logger_name, structlog.stdlib.render_to_log_kwargs],
        "logger_factory": structlog.stdlib.LoggerFactory(),
        "wrapper_class": structlog.stdlib.BoundLogger,
    }


SETUPS: dict[str, dict[str, Any]] = {
    "a processor raises": {"processors": [fail]},
    "a processor forgets to return the line": {"processors": [lambda *_: None]},
    "the class of loggers raises": {"wrapper_class": fail},
    "the factory of loggers raises": {"logger_factory": fail},
    "there are no methods": {"wrapper_class": structlog.BoundLogger, "logger_factory": object},
    "its stream is closed": to(closed_stream()),
    "its reader is gone": to(ClosedReader()),
    "its encoding lacks a letter": to(io.TextIOWrapper(io.BytesIO(), "ascii", write_through=True)),
    "a handler of the standard library raises": standard_library(),
}
ALL = [
    pytest.param(one, marks=[pytest.mark.proof] if number else [])
    for number, one in enumerate(SETUPS)
]


@pytest.fixture
def handler_fails() -> Iterator[None]:
    """Let the standard library's log raise."""
    handler = FailingHandler()
    logging.getLogger().addHandler(handler)
    yield
    logging.getLogger().removeHandler(handler)


@tool
async def fails(number: int) -> str:
    """Fails."""
    raise ValueError(number)


@pytest.mark.usefixtures("handler_fails")
@pytest.mark.parametrize("setup", ALL)
async def test_a_call_whose_log_is_broken(autojump_clock, setup):
    """Failing stages, failing tools and barge-ins are logged, and the call goes on as it would."""
    structlog.configure(**SETUPS[setup])
    heard: list[DTMFInput] = []

    async def answer(call: Call) -> None:
        call.converse(
            ChatNode(
                ScriptedModel(calls("fails", number=1), "One two three four five.", then="Yes?"),
                tools=[fails],
            )
        )
        keys = call.bridge(name="ключи")
        keys.on(DTMFInput, where=lambda m: bool(1 / int(m.event.button))).map(heard.append)
        keys.on(DTMFInput).map(lambda m: 1 / int(m.event.button)).broadcast()

    async with open_call(answer, expect_errors=(ValueError, ZeroDivisionError)) as caller:
        caller.publish(DTMFInput(button="0"))
        await caller.says("hello")
        await caller.until(lambda caller: len(caller.heard) > 4)
        await caller.says("stop")
        await caller.quiet()
        assert caller.heard.endswith("Yes?")
        assert not caller.call.ended.is_set()
        assert caller.events(ToolResult)
        assert len(caller.errors) == 3


@pytest.mark.usefixtures("handler_fails")
@pytest.mark.parametrize("setup", ALL)
async def test_an_agent_whose_log_is_broken(autojump_clock, setup):
    """Its verbs are logged, and settle."""
    structlog.configure(**SETUPS[setup])
    async with open_agent(ChatNode(ScriptedModel(words("One two three.", 1.0)))) as handle:
        handle.send_input("hello")
        await trio.sleep(1.5)
        for verb in (handle.pause, handle.resume, handle.background):
            receipt = verb()
            await receipt.settled
            assert receipt.answer == 1, receipt
        await handle.shutdown().settled
