"""What happens to the callers of a local model whose process gets stuck, for real.

The engine in the process is one that misbehaves on demand: it loads at once, so that what is timed
is the framework, and not llama.cpp.  What goes for all engines is
tested in `tests/nodes/processes`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from bargein.llm import ChatModelError, LocalChat, TextDelta

pytestmark = [
    pytest.mark.proof,
    pytest.mark.alone,
    pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX"),
]

ENGINE = """
import hashlib, os, signal, time
from types import SimpleNamespace

def CommonParams():
    about = ("model", "cpuparams", "cpuparams_batch")
    return SimpleNamespace(**{name: SimpleNamespace() for name in about})

def get_device_info():
    return []

def chunk(text):
    return {"choices": [{"index": 0, "delta": {"content": text}}]}

class Server:
    def __init__(self, params):
        pass

    def handle_chat_completions(self, body, give):
        word = body["messages"][-1]["content"]
        if word == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif word == "spin":
            while True:  # without the interpreter's lock, as llama.cpp reads a prompt
                hashlib.pbkdf2_hmac("sha256", b"", b"", 2_000_000)
        elif word == "read on":  # a long prompt: slow, and never late
            for _ in range(4):
                time.sleep(0.4)
                give({"choices": [], "prompt_progress": {"processed": 128}})
        give(chunk(str(os.getpid())))
"""
"""A package `xllamacpp` that does as the question says."""

SILENCE_S = 4.0


@asynccontextmanager
async def opened(monkeypatch: pytest.MonkeyPatch, folder: Path) -> AsyncIterator[LocalChat]:
    """A local model around the engine above."""
    model = folder / "model.gguf"
    model.write_bytes(b"weights")
    (folder / "xllamacpp.py").write_text(ENGINE)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    chat = LocalChat(model, silence_timeout_s=SILENCE_S)
    with trio.fail_after(60):
        async with chat.open():
            yield chat


async def ask(chat: LocalChat, word: str) -> str:
    """Ask, and return the whole answer: the number of the process."""
    pieces = [piece async for piece in chat.stream([{"role": "user", "content": word}])]
    return "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))


async def test_the_second_caller_hears_within_two_seconds(monkeypatch, tmp_path):
    """While the first answer gets nowhere, the next is given by another process, in time."""
    async with opened(monkeypatch, tmp_path) as chat, trio.open_nursery() as nursery:
        first = await ask(chat, "who?")

        async def get_stuck() -> None:
            with pytest.raises(ChatModelError):
                await ask(chat, "spin")

        nursery.start_soon(get_stuck)
        await trio.sleep(0.1)
        began_s = trio.current_time()
        assert await ask(chat, "who?") != first
        assert trio.current_time() - began_s < 2


@pytest.mark.parametrize("how", ["stop", "spin"])
async def test_the_caller_who_waits_is_told_in_time(monkeypatch, tmp_path, how):
    """The one whose answer is stuck gets an error that says so, and may ask again."""
    async with opened(monkeypatch, tmp_path) as chat:
        began_s = trio.current_time()
        with pytest.raises(ChatModelError) as caught:
            await ask(chat, how)
        # Of one that works and gets nowhere only its own limit can tell.
        assert trio.current_time() - began_s < (SILENCE_S if how == "spin" else 0) + 2.5
        assert caught.value.retryable
        assert await ask(chat, "who?")


async def test_who_gives_up_a_stuck_answer_is_free_at_once(monkeypatch, tmp_path):
    """A barge-in while the model is stuck: the next question is answered by another process."""
    async with opened(monkeypatch, tmp_path) as chat:
        first = await ask(chat, "who?")
        with trio.move_on_after(0.2):
            await ask(chat, "spin")
        began_s = trio.current_time()
        assert await ask(chat, "who?") != first
        assert trio.current_time() - began_s < 2


async def test_a_prompt_that_is_read_on_is_not_late(monkeypatch, tmp_path):
    """A long prompt reports progress, so a waiting caller needs no second process."""
    async with opened(monkeypatch, tmp_path) as chat, trio.open_nursery() as nursery:
        first = await ask(chat, "who?")
        nursery.start_soon(ask, chat, "read on")
        await trio.sleep(0.1)
        assert await ask(chat, "who?") == first


async def test_a_paused_reader_delays_nobody(monkeypatch, tmp_path):
    """A paused call that does not read its answer does not block other calls."""
    monkeypatch.setattr(sys.modules[__name__], "ENGINE", ENGINE.replace(
        "give(chunk(str(os.getpid())))", "[give(chunk(str(os.getpid()))) for _ in range(50)]"
    ))  # fmt: skip
    async with opened(monkeypatch, tmp_path) as chat:
        answer = chat.stream([{"role": "user", "content": "who?"}])
        await anext(answer)
        began_s = trio.current_time()
        assert str(os.getpid()) != await ask(chat, "who?") != ""
        assert trio.current_time() - began_s < 2
        await answer.aclose()
