"""A store that raises costs the call no answer."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from bargein import App, Call, UserEntry
from bargein.events import AgentError, UserTranscriptionReceived
from bargein.testing import open_call


class Store:
    """Keeps one conversation in memory, and raises for the first entries."""

    def __init__(self, error: BaseException, failures: float, refused: str = "") -> None:
        self.error = error
        self.failures = failures
        self.refused = refused
        self.tries: list[float] = []
        self.saved: dict[int, Any] = {}
        self.id = "ada"
        self.entries: tuple[Any, ...] = ()
        self.on_trouble: Any = None

    @asynccontextmanager
    async def open_conversation(self, id: str) -> AsyncIterator[Store]:
        """Open the only one."""
        yield self

    def write(self, index: int, entry: Any) -> None:
        """Raise at first, and always for what it refuses."""
        self.tries.append(trio.current_time())
        if self.failures or getattr(entry, "content", None) == self.refused:
            self.failures = max(0, self.failures - 1)
            raise self.error
        self.saved[index] = entry

    @property
    def said(self) -> list[str]:
        """What the caller said, as it is in the store."""
        return [e.content for _, e in sorted(self.saved.items()) if isinstance(e, UserEntry)]

    async def list(self) -> list[Any]:
        """Nobody asks."""
        return []

    async def delete(self, id: str) -> None:
        """Nobody asks."""


@pytest.mark.parametrize("error", [OSError("full"), SystemExit(1)], ids=["error", "exit"])
async def test_what_a_store_raises_is_told_once_and_tried_again(
    autojump_clock: None, error: BaseException
) -> None:
    """The words of a caller are kept in order until the store takes the next."""
    store = Store(error, failures=2)
    async with open_call(App(_answer, conversations=store), expect_errors=True) as caller:
        for text in ("one", "two", "three"):
            caller.publish(UserTranscriptionReceived(content=text))
        await caller.at(caller.now_s + 1)
        assert len(caller.events(AgentError)) == 1
    assert store.said == ["one", "two", "three"]


async def _answer(call: Call) -> None:
    pass


async def test_it_is_tried_again_without_another_word(autojump_clock: None) -> None:
    """A timer tries, half a second later, then twice as late each time, up to half a minute."""
    store = Store(OSError("full"), failures=8)
    async with open_call(App(_answer, conversations=store), expect_errors=True) as caller:
        caller.publish(UserTranscriptionReceived(content="one"))
        began_s = store.tries[0]
        await caller.at(130)
        assert store.said == ["one"]
        waits = [round(s - began_s, 3) for s in store.tries]
        assert waits == [0, 0.5, 1.5, 3.5, 7.5, 15.5, 31.5, 61.5, 91.5]


async def test_each_trouble_is_told_once(autojump_clock: None) -> None:
    """A store that works again and then fails again is told of a second time, tried as early."""
    store = Store(OSError("full"), failures=3)
    async with open_call(App(_answer, conversations=store), expect_errors=True) as caller:
        caller.publish(UserTranscriptionReceived(content="one"))
        await caller.at(10)
        assert (store.said, len(caller.events(AgentError))) == (["one"], 1)
        store.failures = 1
        caller.publish(UserTranscriptionReceived(content="two"))
        await caller.at(10.6)
        assert (store.said, len(caller.events(AgentError))) == (["one", "two"], 2)


async def test_an_entry_that_alone_is_refused_delays_no_other(autojump_clock: None) -> None:
    """What came with it is saved with the next entry that the store takes."""
    store = Store(ValueError("no"), failures=3, refused="poison")
    async with open_call(App(_answer, conversations=store), expect_errors=True) as caller:
        for text in ("poison", "one", "two"):
            caller.publish(UserTranscriptionReceived(content=text))
        assert store.said == []
        caller.publish(UserTranscriptionReceived(content="three"))
        assert store.said == ["one", "two", "three"]


async def test_the_end_of_the_call_tries_once_more(autojump_clock: None) -> None:
    """Also behind an entry that is refused; what is lost then is in the log."""
    store = Store(OSError("full"), failures=math.inf, refused="poison")
    with capture_logs() as logs:
        async with open_call(App(_answer, conversations=store), expect_errors=True) as caller:
            for text in ("poison", "one", "two"):
                caller.publish(UserTranscriptionReceived(content=text))
            await caller.at(1)
            store.failures = 0
    assert store.said == ["one", "two"]
    assert [e["entries"] for e in logs if e["event"] == "conversation_entries_lost"] == [1]


async def test_the_last_try_has_a_deadline(mock_clock: trio.testing.MockClock) -> None:
    """A store that is slow to refuse cannot keep a call from ending."""
    store = Store(OSError("full"), failures=math.inf)
    mock_clock.autojump_threshold = 0

    def slow(index: int, entry: Any) -> None:
        mock_clock.jump(0.9)
        raise OSError("full")

    async with open_call(App(_answer, conversations=store), expect_errors=True) as caller:
        for number in range(100):
            caller.publish(UserTranscriptionReceived(content=str(number)))
        store.write = slow
        began_s = trio.current_time()
    assert 1.8 <= trio.current_time() - began_s <= 3


async def test_no_more_is_kept_than_the_limit(autojump_clock: None) -> None:
    """The memory for a store that never works again is bounded; what is lost is in the log."""
    texts = [str(number) for number in range(10_001)]
    store = Store(OSError("full"), failures=math.inf)
    with capture_logs() as logs:
        async with open_call(App(_answer, conversations=store), expect_errors=True) as caller:
            for text in texts:
                caller.publish(UserTranscriptionReceived(content=text))
            store.failures = 0
    assert store.said == texts[:-1]
    assert [e["index"] for e in logs if e["event"] == "conversation_entry_lost"] == [10_000]
