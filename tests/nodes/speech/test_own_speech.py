"""open_call(own_speech=True) runs the app's own stack, and opens it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bargein import App
from bargein.speech import SileroModel, Speech
from bargein.testing import open_call


class Stack:
    """Notes when it is opened and closed, and for which calls."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        self.notes.append("open")
        try:
            yield
        finally:
            self.notes.append("close")

    def attach(self, call: object) -> None:
        self.notes.append("attach")


async def answer(call: object) -> None:
    pass


async def test_the_stack_is_open_in_the_call_and_closed_after_it(autojump_clock):
    """As a server does it, so that models are loaded before the first call."""
    stack = Stack()
    async with open_call(App(answer, speech=stack), own_speech=True):
        assert stack.notes == ["open", "attach"]
    assert stack.notes == ["open", "attach", "close"]


async def test_a_stack_that_is_open_is_not_opened_again(autojump_clock):
    """Several calls within app.open() share what it has loaded."""
    stack = Stack()
    app = App(answer, speech=stack)
    async with app.open():
        for _ in range(2):
            async with open_call(app, own_speech=True):
                pass
    assert stack.notes == ["open", "attach", "attach", "close"]


async def test_a_loaded_model_detects_the_voices_of_each_call(autojump_clock):
    """vad=SileroModel() is what users have: each call gets a detector of its own from it."""
    made = []

    class Model(SileroModel):
        def __init__(self) -> None:
            pass

        def new_call(self):
            made.append(Detector())
            return made[-1]

    class Detector:
        frame_samples = 512

        def probability(self, frame: bytes) -> float:
            return 0.0

    app = App(answer, speech=Speech(vad=Model()))
    for _ in range(2):
        async with open_call(app, own_speech=True):
            pass
    assert len(made) == 2
