"""The iterator that closes what it holds when it is dropped."""

from __future__ import annotations

import gc
import threading

import pytest
import structlog
import trio

from bargein.llm import AnswerStream, TextDelta


class Source:
    """A generator that notes how it ends."""

    def __init__(self, *, error: Exception | None = None) -> None:
        self.closed = trio.Event()
        self.error = error

    async def pieces(self):
        """Two pieces, then silence."""
        try:
            yield TextDelta("a")
            yield TextDelta("b")
            await trio.sleep_forever()
        finally:
            self.closed.set()
            if self.error:
                raise self.error


async def test_break(autojump_clock) -> None:
    """A loop that is left closes the generator without any further help."""
    source = Source()
    async for piece in AnswerStream(source.pieces()):
        assert piece == TextDelta("a")
        break
    with trio.fail_after(1):
        await source.closed.wait()


async def test_dropped_while_it_is_read(autojump_clock) -> None:
    """A dropped answer with a pending read continues until that read is over."""
    source = Source()
    assert await anext(AnswerStream(source.pieces())) == TextDelta("a")
    with trio.fail_after(1):
        await source.closed.wait()


def test_dropped_unread() -> None:
    """An answer that nobody began costs nothing."""
    AnswerStream(Source().pieces())
    gc.collect()


async def test_dropped_in_another_thread() -> None:
    """The garbage collector may run in any thread."""
    source = Source()
    box = [AnswerStream(source.pieces())]
    await anext(box[0])
    thread = threading.Thread(target=box.clear)
    thread.start()
    with trio.fail_after(5):
        await source.closed.wait()
    thread.join()


async def test_error_while_a_dropped_one_closes(autojump_clock) -> None:
    """An error in closing what was dropped is logged, and hurts nobody."""
    source = Source(error=KeyError("secret"))
    with structlog.testing.capture_logs() as logs:
        async for _ in AnswerStream(source.pieces()):
            break
        await source.closed.wait()
        await trio.testing.wait_all_tasks_blocked()
    assert logs == [
        {"event": "llm_answer_close_failed", "error": "KeyError", "log_level": "warning"}
    ]


async def test_block_closes(autojump_clock) -> None:
    """Leaving its block closes it, in the middle or at the end, and more than once does no harm."""
    source = Source()
    async with AnswerStream(source.pieces()) as answer:
        await anext(answer)
    assert source.closed.is_set()
    await answer.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(answer)


def test_dropped_after_the_run() -> None:
    """One that outlives its run is closed at the end of the run, and dropped in peace."""
    source = Source()
    box = []

    async def main() -> None:
        box.append(AnswerStream(source.pieces()))
        await anext(box[0])

    trio.run(main)
    assert source.closed.is_set()  # trio has closed it
    box.clear()
    gc.collect()
