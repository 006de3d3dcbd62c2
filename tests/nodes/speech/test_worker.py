"""Worker processes, for real, around small engines written for the test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest
import trio
from structlog.testing import capture_logs

from nodes.speech import (
    SpeechEngineError,
    SpeechNotOpenError,
    SpeechPiece,
    SpeechWorkerError,
    WorkerPool,
    WorkerSettings,
)

ENGINE = """
import os, sys, time

def load(settings):
    if settings.get("broken"):
        raise ValueError("no such voice")
    if settings.get("deaf_start"):
        time.sleep(60)
    return Engine(settings)

class Engine:
    sample_rate_hz = 8000

    def __init__(self, settings):
        print("a native library prints", flush=True)
        print("to stderr", file=sys.stderr, flush=True)

    def synthesize(self, text, is_cancelled):
        if text == "die":
            yield b"\\x01\\x00", []
            os._exit(3)
        if text == "refuse":
            raise ValueError("cannot say it")
        if text == "pid":
            yield str(os.getpid()).encode(), []
        elif text == "endless":
            while not is_cancelled():
                yield b"\\x02\\x00" * 400, []
                time.sleep(0.005)
        elif text == "deaf":
            yield b"\\x03\\x00", []
            time.sleep(60)
        else:
            for index, word in enumerate(text.split()):
                yield word.encode(), [(word, float(index), index + 0.5)]
"""

LIMIT_S = 20
"""Generous: starting a Python process takes 0.1 s on an idle machine."""

OpenPool = Callable[..., WorkerPool]


@pytest.fixture
def pool_of(tmp_path: Path) -> OpenPool:
    """Return a maker of pools around the engine above."""
    engine = tmp_path / "engine.py"
    engine.write_text(ENGINE)

    def make(
        size: int = 1, cancel_s: float = 5, start_s: float = LIMIT_S, **settings: str
    ) -> WorkerPool:
        return WorkerPool(
            WorkerSettings("tester", engine, settings, size, start_s=start_s, cancel_s=cancel_s)
        )

    return make


async def say(pool: WorkerPool, text: str) -> list[SpeechPiece]:
    """Return all pieces of a text."""
    return [piece async for piece in pool.synthesize(text)]


async def pid_of(pool: WorkerPool) -> int:
    """Return the process that says the next text."""
    (piece,) = await say(pool, "pid")
    return int(piece.pcm)


def is_alive(pid: int) -> bool:
    """Return whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_pieces_and_words_arrive_in_order(pool_of: OpenPool) -> None:
    """synthesize yields the engine's pieces in order, with their words."""
    pool = pool_of()
    async with pool.open():
        assert pool.sample_rate_hz == 8000
        pieces = await say(pool, "one two")
    assert [piece.pcm for piece in pieces] == [b"one", b"two"]
    assert [(word.text, word.start_s, word.end_s) for word in pieces[1].words] == [("two", 1, 1.5)]


async def test_no_process_is_left(pool_of: OpenPool) -> None:
    """Leaving the block ends the process, and the pool says that it is not open."""
    pool = pool_of()
    async with pool.open():
        pid = await pid_of(pool)
        assert is_alive(pid)
    assert not is_alive(pid)
    with pytest.raises(SpeechNotOpenError, match="tester is not open"):
        await say(pool, "one")


async def test_closing_in_mid_text_ends_the_process(pool_of: OpenPool) -> None:
    """Closing the pool while a deaf engine is busy ends the text with an error, and the process."""
    pool = pool_of()
    errors: list[SpeechWorkerError] = []
    busy = trio.Event()

    async def talk() -> None:
        try:
            async for _ in pool.synthesize("deaf"):
                busy.set()
        except SpeechWorkerError as error:
            errors.append(error)

    async with trio.open_nursery() as nursery, pool.open():
        pid = await pid_of(pool)
        nursery.start_soon(talk)
        await busy.wait()
    assert "closed in the middle" in str(errors[0])
    assert not is_alive(pid)


async def test_a_cancelled_text_is_dropped(pool_of: OpenPool) -> None:
    """After a cancel the same process says the next text, without a piece of the old one."""
    pool = pool_of()
    async with pool.open():
        pid = await pid_of(pool)
        for _ in range(5):
            with trio.CancelScope() as scope:
                async with aclosing(pool.synthesize("endless")) as pieces:
                    async for _ in pieces:
                        scope.cancel()
            assert [piece.pcm for piece in await say(pool, "next")] == [b"next"]
        assert await pid_of(pool) == pid


async def test_closing_the_iterator_drops_the_text(pool_of: OpenPool) -> None:
    """Leaving the loop early has the same effect as a cancel."""
    pool = pool_of()
    async with pool.open():
        async with aclosing(pool.synthesize("endless")) as pieces:
            async for _ in pieces:
                break
        assert [piece.pcm for piece in await say(pool, "next")] == [b"next"]


async def test_a_consumer_that_stalls_is_dropped_too(pool_of: OpenPool) -> None:
    """A cancel gets through while the pipe is full, because nobody took pieces for a while."""
    pool = pool_of()
    async with pool.open():
        with trio.move_on_after(0.5):
            async with aclosing(pool.synthesize("endless")) as pieces:
                await anext(pieces)
                await trio.sleep_forever()
        assert [piece.pcm for piece in await say(pool, "next")] == [b"next"]


async def test_a_deaf_engine_is_replaced(pool_of: OpenPool) -> None:
    """An engine that does not end after a cancel is killed, and a new process says the next."""
    pool = pool_of(cancel_s=0.2)
    async with pool.open():
        pid = await pid_of(pool)
        with trio.CancelScope() as scope:
            async with aclosing(pool.synthesize("deaf")) as pieces:
                async for _ in pieces:
                    scope.cancel()
        assert await pid_of(pool) != pid
        assert not is_alive(pid)


async def test_a_dead_worker_is_an_error_and_is_replaced(pool_of: OpenPool) -> None:
    """A process that dies in mid-text raises SpeechWorkerError after its good pieces."""
    pool = pool_of()
    got: list[bytes] = []
    async with pool.open():
        pid = await pid_of(pool)

        async def listen() -> None:
            async for piece in pool.synthesize("die"):
                got.append(piece.pcm)

        with pytest.raises(SpeechWorkerError, match="tester: the worker process died"):
            await listen()
        assert got == [b"\x01\x00"]
        assert [piece.pcm for piece in await say(pool, "next")] == [b"next"]
        assert await pid_of(pool) != pid


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
async def test_a_worker_killed_while_idle(pool_of: OpenPool) -> None:
    """The first text after an idle process was killed fails, the second is said."""
    pool = pool_of()
    async with pool.open():
        os.kill(await pid_of(pool), signal.SIGKILL)
        with pytest.raises(SpeechWorkerError):
            await say(pool, "one")
        assert [piece.pcm for piece in await say(pool, "two")] == [b"two"]


async def test_a_refused_text_keeps_the_worker(pool_of: OpenPool) -> None:
    """An exception of the engine becomes SpeechEngineError, and the process lives on."""
    pool = pool_of()
    async with pool.open():
        pid = await pid_of(pool)
        with pytest.raises(SpeechEngineError, match="ValueError: cannot say it"):
            await say(pool, "refuse")
        assert await pid_of(pool) == pid


async def test_an_engine_that_cannot_load(pool_of: OpenPool) -> None:
    """open raises the engine's own words, not wrapped in a group."""
    with pytest.raises(SpeechEngineError, match="no such voice"):
        async with pool_of(broken="yes").open():
            pass


async def test_an_engine_that_never_gets_ready(pool_of: OpenPool) -> None:
    """open gives up at its deadline."""
    with pytest.raises(SpeechWorkerError, match="not ready within"):
        async with pool_of(deaf_start="yes", start_s=0.3).open():
            pass


async def test_open_can_be_cancelled(pool_of: OpenPool) -> None:
    """A cancel while the engine loads leaves no process and no pool."""
    pool = pool_of(deaf_start="yes")
    with trio.move_on_after(0.3) as scope:
        async with pool.open():
            pass
    assert scope.cancelled_caught
    with pytest.raises(SpeechNotOpenError):
        _ = pool.sample_rate_hz


async def test_texts_wait_their_turn(pool_of: OpenPool) -> None:
    """With one process, ten texts at once are all said; with two, two are said at once."""
    said: list[bytes] = []

    async def talk(pool: WorkerPool, text: str) -> None:
        said.extend([piece.pcm for piece in await say(pool, text)])

    pool = pool_of()
    async with pool.open(), trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(talk, pool, str(number))
    assert sorted(said) == [str(number).encode() for number in range(10)]
    pair = pool_of(size=2)
    async with pair.open(), aclosing(pair.synthesize("endless")) as endless:
        await anext(endless)
        assert [piece.pcm for piece in await say(pair, "other")] == [b"other"]


async def test_what_the_process_prints_is_logged(pool_of: OpenPool) -> None:
    """Both outputs of the process go to the debug log, under a key that is private."""
    pool = pool_of()
    with capture_logs() as logs:
        async with pool.open():
            await say(pool, "one")
            with trio.fail_after(20):
                while sum(log["event"] == "speech_worker_stderr" for log in logs) < 2:  # noqa: ASYNC110 - a log has no event
                    # The lines come through a pipe of their own, in their own time.
                    await trio.sleep(0.01)
    lines = [log["pii_line"] for log in logs if log["event"] == "speech_worker_stderr"]
    assert sorted(lines) == ["a native library prints", "to stderr"]


PARENT = """
import sys
sys.path[:0] = {path!r}
import trio
from pathlib import Path
from nodes.speech import WorkerPool, WorkerSettings

async def main():
    pool = WorkerPool(WorkerSettings("tester", Path({engine!r}), {{}}))
    async with pool.open():
        async for piece in pool.synthesize("pid"):
            print(piece.pcm.decode(), flush=True)
        async for piece in pool.synthesize("deaf"):
            print("busy", flush=True)

trio.run(main)
"""


async def test_a_worker_does_not_outlive_its_parent(tmp_path: Path, pool_of: OpenPool) -> None:
    """When the parent is killed while the engine is busy and deaf, the worker ends too."""
    script = tmp_path / "parent.py"
    script.write_text(PARENT.format(path=sys.path, engine=str(tmp_path / "engine.py")))
    parent = await trio.lowlevel.open_process(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert parent.stdout is not None
    said = b""
    with trio.fail_after(LIMIT_S):
        while b"busy" not in said:
            said += await parent.stdout.receive_some()
    pids = [int(line) for line in said.split() if line.isdigit()]
    parent.kill()
    await parent.wait()
    await parent.stdout.aclose()
    with trio.fail_after(LIMIT_S):
        while is_alive(pids[0]):  # noqa: ASYNC110 - an orphan's end is told to nobody
            await trio.sleep(0.01)
