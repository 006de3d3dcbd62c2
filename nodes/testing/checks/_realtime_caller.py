"""A caller for the check of speech-to-speech models: a microphone, a line, and questions.

Rule 1. The microphone never stops: between turns it sends silence, as in a call.
Rule 2. The caller does what a `RealtimeNode` does between line and call: it starts an answer early,
withdraws a turn that nobody asks about, and tells a new line what was said.
Rule 3. A line that is lost for good is an error of the current use; the next use opens another one,
as the next call would.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio

from bargein.bridge import UserEntry
from bargein.nodes.llm import SpeechDelta
from bargein.nodes.realtime import RealtimeModel
from bargein.nodes.realtime._caller_audio import CallerAudioStream
from bargein.nodes.realtime._realtime_connection import RealtimeLine, SessionSettings
from bargein.nodes.speech import EarFact, TurnOver
from bargein.routes.error_containment import first_error
from bargein.routes.service_nursery import open_service_nursery

from ._check_ear import BYTES_PER_S, PIECE_BYTES, HeardTurn
from ._check_report import BreachError

PROMPT = "You sell coffee. Be brief."


@asynccontextmanager
async def open_caller(model: RealtimeModel, *, hears: bool) -> AsyncIterator[RealtimeCaller]:
    """Call a model while the block runs."""
    async with open_service_nursery("the caller hangs up") as nursery:
        caller = RealtimeCaller(model, hears=hears)
        nursery.start_soon(caller.keep_line)
        yield caller


class RealtimeCaller:
    """Talks with a model turn by turn; made by `open_caller`."""

    def __init__(self, model: RealtimeModel, *, hears: bool) -> None:
        """Keep the settings; `keep_line` opens a line."""
        self._model = model
        self._hears = hears
        self._speech: deque[bytes] = deque()  # audio to send
        self._facts: deque[EarFact] = deque()  # of the awaited turn
        self._said: UserEntry | None = None
        self._is_awaited = self._in_turn = self._is_known = False
        self._error: BaseException | None = None
        self._changed = trio.Event()
        self._audio: CallerAudioStream | None = None
        self._line = self._new_line()

    def _new_line(self) -> RealtimeLine:
        return RealtimeLine(
            self._model,
            lambda: SessionSettings(PROMPT, [], detects=self._hears, speaks=True),
            on_committed=self._start_early,
            on_restart=self._restart,
            everything=self._chat,
        )

    def _restart(self) -> None:
        self._is_known = False

    # --- the line -------------------------------------------------------------------------------

    async def keep_line(self) -> None:
        """Keep a line open, and open another one once a use has noticed the end of the last."""
        while True:
            try:
                async with self._line.open_stream() as self._audio, trio.open_nursery() as nursery:
                    nursery.start_soon(self._speak, self._audio)
                    while True:
                        self._follow(await self._audio.receive())
            except Exception as error:  # noqa: BLE001  # raised in _wait()
                self._error, self._audio = first_error(error), None
                self._has_changed()
            while self._error is not None:
                await self._change()

    async def _speak(self, audio: CallerAudioStream) -> None:
        while True:
            await audio.send(self._speech.popleft() if self._speech else bytes(PIECE_BYTES))
            self._has_changed()
            await trio.sleep(PIECE_BYTES / BYTES_PER_S)

    def _follow(self, fact: EarFact) -> None:
        self._in_turn = not isinstance(fact, TurnOver)
        if self._is_awaited:
            self._facts.append(fact)
        elif not self._in_turn and self._line.caller_audio.settle():
            self._line.throw_away()
        self._has_changed()

    async def _change(self) -> None:
        self._changed = trio.Event()
        await self._changed.wait()

    def _has_changed(self) -> None:
        self._changed.set()

    async def _opened(self) -> CallerAudioStream:
        """Return the line's audio input; of a new line if the last one was lost for good."""
        if self._error is not None:
            self._error, self._in_turn = None, False
            self._line = self._new_line()
            self._has_changed()
        while self._audio is None:
            await self._wait()
        return self._audio

    async def _wait(self) -> None:
        """Wait until something has changed; raise the error of a lost line."""
        if self._error is None:
            await self._change()
        if self._error is not None:
            raise self._error

    # --- a turn of the caller's -----------------------------------------------------------------

    async def say(self, pcm: bytes) -> str:
        """Say something, and return what the model has heard; empty if it does not say."""
        audio = await self._opened()
        while self._in_turn or self._speech:
            await self._wait()
        self._is_awaited, self._is_known, self._said = True, False, None
        try:
            audio.let_in()
            self._speech += (pcm[n : n + PIECE_BYTES] for n in range(0, len(pcm), PIECE_BYTES))
            text = await self._heard() if self._hears else await self._sent()
            self._said = UserEntry(trio.current_time(), text)
            self._is_known = audio.is_heard
            audio.claim(lambda: None)
            return text if self._hears else ""
        finally:
            self._is_awaited = False
            self._speech.clear()
            self._facts.clear()
            if self._said is None and not self._in_turn and audio.settle():
                self._line.throw_away()

    async def _heard(self) -> str:
        turn = HeardTurn()
        while not turn.is_over:
            while not self._facts:
                await self._wait()
            turn.add(self._facts.popleft())
        return turn.heard().text

    async def _sent(self) -> str:
        while self._speech:
            await self._wait()
        return "A latte, please."  # as if our ears had heard it

    async def expect_nothing(self, seconds: float) -> None:
        """Be silent for a while.

        Raises:
            BreachError: The model reported a turn meanwhile.
        """
        await self._opened()
        self._is_awaited = True
        try:
            with trio.move_on_after(seconds):
                while not self._facts:
                    await self._wait()
                raise BreachError("nothing behind a turn", repr(self._facts[0]))
        finally:
            self._is_awaited = False
            self._facts.clear()

    async def pour(self, pcm: bytes, pieces: int) -> None:
        """Send a lot of audio at once."""
        audio = await self._opened()
        audio.let_in()
        for _ in range(pieces):
            await audio.send(pcm)

    # --- an answer ------------------------------------------------------------------------------

    def _chat(self) -> list[dict[str, Any]]:
        unknown_entries = [] if self._said is None or self._is_known else [self._said]
        messages = [{"role": "user", "content": entry.content} for entry in unknown_entries]
        chat: list[dict[str, Any]] = [{"role": "system", "content": PROMPT}, *messages]
        self._line.ask_about(unknown_entries, len(chat))
        return chat

    def _start_early(self) -> None:
        if self._hears and self._is_awaited:
            self._line.start_early(self._chat(), ())

    def ask(self) -> Any:
        """Return the model's answer, as from `ChatModel.stream`."""
        return self._line.stream(self._chat())

    def hear_half(self, delta: SpeechDelta) -> None:
        """Truncate the model's answer after half of its first audio."""
        half_ms = 500 * len(delta.pcm) / 2 / delta.sample_rate_hz
        self._line.truncate(delta.item, int(half_ms))
