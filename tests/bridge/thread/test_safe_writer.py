"""A store that raises costs the call no turn."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bridge import App, Call, UserEntry
from bridge.events import AgentError, UserTranscriptionReceived
from bridge.testing import open_call


class Store:
    """Keeps one conversation in memory, and raises for the first entries."""

    def __init__(self, error: BaseException, failures: int) -> None:
        self.error = error
        self.failures = failures
        self.saved: dict[int, Any] = {}
        self.id = "ada"
        self.entries: tuple[Any, ...] = ()
        self.on_trouble: Any = None

    @asynccontextmanager
    async def open_thread(self, id: str) -> AsyncIterator[Store]:
        """Open the only one."""
        yield self

    def write(self, index: int, entry: Any) -> None:
        """Raise at first."""
        if self.failures:
            self.failures -= 1
            raise self.error
        self.saved[index] = entry

    async def list(self) -> list[Any]:
        """Nobody asks."""
        return []

    async def delete(self, id: str) -> None:
        """Nobody asks."""


@pytest.mark.parametrize("error", [OSError("full"), SystemExit(1)], ids=["error", "exit"])
async def test_what_a_store_raises_is_told_once_and_tried_again(
    autojump_clock: None, error: BaseException
) -> None:
    """The words of a caller are kept in order until the store takes them."""
    store = Store(error, failures=2)

    async def answer(call: Call) -> None:
        pass

    app = App(answer, threads=store)
    async with open_call(app, expect_errors=True) as caller:
        for text in ("one", "two", "three"):
            caller.publish(UserTranscriptionReceived(content=text))
            await caller.at(caller.now_s + 1)
        assert len(caller.events(AgentError)) == 1
    said = [e.content for _, e in sorted(store.saved.items()) if isinstance(e, UserEntry)]
    assert said == ["one", "two", "three"]
