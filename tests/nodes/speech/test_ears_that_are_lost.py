"""An ear that fails for good within a turn: what the caller hears, and when they are answered."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
import trio

from bargein import App, ChatNode
from bargein.events import (
    ListeningFailed,
    ListeningResumed,
    StageStalled,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bargein.speech import (
    Fillers,
    PerhapsOver,
    Speech,
    TurnOver,
    VoiceBegan,
    WordsHeard,
)
from bargein.testing import ScriptedModel, open_call
from bargein.vendors import VendorError

from .failing import RATE_HZ, WordVoice, stream
from .hearing import times
from .test_streaming_ears import ScriptedEar

APOLOGY, MOMENT = Fillers().apology, Fillers().fillers[0]


def app_with(ear: ScriptedEar) -> App:
    async def answer(call) -> None:
        call.converse(ChatNode(ScriptedModel("Sure.")))

    return App(answer, speech=Speech(ear, WordVoice()))


async def be_silent(caller, seconds: float) -> None:
    await stream(caller.call, bytes(round(2 * RATE_HZ * seconds)))


@pytest.mark.parametrize("paused", [True, False])
async def test_words_that_a_lost_ear_has_told_are_answered_at_once(autojump_clock, paused) -> None:
    """A turn does not wait for the longest silence after its ear was lost."""
    ear = ScriptedEar()
    async with open_call(app_with(ear), own_speech=True, expect_errors=True) as caller:
        await be_silent(caller, 5.0)  # the fillers are made
        ear.tell(VoiceBegan(), WordsHeard("a latte"), *([PerhapsOver(0.6)] if paused else []))
        await be_silent(caller, 0.2)
        ear.tell(OSError("the line broke"))
        failed_s = trio.current_time()
        await be_silent(caller, 8.0)
        said = [e.content for e in caller.events(UserTranscriptionReceived) if e.final]
        assert said == ["a latte"]
        assert times(caller, UserStoppedSpeaking)[0] - failed_s < (0.1 if paused else 1.0)
        await caller.quiet()
        assert caller.heard.split() == [*APOLOGY.split(), "Sure."]


async def test_behind_the_apology_nobody_is_asked_to_wait(autojump_clock) -> None:
    """Of an ear that is lost no words come, so "One moment." would be untrue."""
    ear = ScriptedEar()
    async with open_call(app_with(ear), own_speech=True, expect_errors=True) as caller:
        await be_silent(caller, 5.0)
        ear.tell(VoiceBegan())
        await be_silent(caller, 0.2)
        ear.tell(OSError("the line broke"))
        await be_silent(caller, 12.0)
        assert len(caller.events(ListeningFailed)) == 1
        assert {stalled.stage for stalled in caller.events(StageStalled)} == {"ear"}
        assert APOLOGY in caller.heard
        assert MOMENT not in caller.heard


class FailingEar(ScriptedEar):
    """An ear that cannot be opened for a while."""

    def __init__(self, *, until_s: float, error: Exception) -> None:
        super().__init__()
        self.until_s, self.error = until_s, error
        self.opened_s: list[float] = []  # after the first time
        self._began_s: float | None = None

    @asynccontextmanager
    async def open_stream(self) -> AsyncIterator[ScriptedEar]:
        now_s = trio.current_time()
        self._began_s = now_s if self._began_s is None else self._began_s
        self.opened_s.append(round(now_s - self._began_s, 6))
        if self.opened_s[-1] < self.until_s:
            raise self.error
        async with super().open_stream() as stream:
            yield stream


async def test_an_ear_that_works_again_hears_what_the_caller_says_again(autojump_clock) -> None:
    """The apology asks the caller to say it again, which is then heard and answered."""
    ear = FailingEar(until_s=10.0, error=VendorError("ear", "the line broke"))
    async with open_call(app_with(ear), own_speech=True, expect_errors=True) as caller:
        await be_silent(caller, 20.0)
        assert ear.opened_s == [0.0, 1.0, 3.0, 7.0, 15.0]
        ear.tell(VoiceBegan(), WordsHeard("a latte"), TurnOver("a latte"))
        await be_silent(caller, 1.0)
        await caller.quiet()
        assert caller.heard.split()[-1] == "Sure."
        (failed,), (resumed,) = caller.events(ListeningFailed), caller.events(ListeningResumed)
        assert failed.error == "VendorError"
        assert resumed.failed_s == 20.0  # it reported something
        assert caller.call.snapshot().listening_error == ""
        assert len(caller.errors) == 1


async def test_an_ear_that_reports_nothing_counts_as_hearing_after_a_while(autojump_clock) -> None:
    """A caller who reads that nobody hears them would never speak."""
    ear = FailingEar(until_s=1.0, error=OSError("the line broke"))
    async with open_call(app_with(ear), own_speech=True, expect_errors=True) as caller:
        await trio.sleep(40.0)
        assert times(caller, ListeningResumed) == [31.0]


async def test_an_ear_that_stays_lost_is_opened_ever_more_rarely(autojump_clock) -> None:
    """The caller hears one apology, and developers see one error."""
    ear = FailingEar(until_s=0.0, error=OSError("the line broke"))
    async with open_call(app_with(ear), own_speech=True, expect_errors=True) as caller:
        await trio.sleep(5.0)  # the fillers are made
        ear.until_s = 1000.0
        ear.tell(ear.error)
        await trio.sleep(300.0)
        waits = [after - before for before, after in pairwise([5.0, *ear.opened_s[1:]])]
        assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]
        assert len(caller.events(ListeningFailed)) == len(caller.errors) == 1
        assert caller.heard.split() == APOLOGY.split()


async def test_an_ear_that_breaks_at_each_word_is_opened_ever_more_rarely(autojump_clock) -> None:
    """Reporting something does not make it sound."""
    ear = FailingEar(until_s=0.0, error=OSError())
    async with open_call(app_with(ear), own_speech=True, expect_errors=True) as caller:
        for _ in range(4):
            ear.tell(VoiceBegan(), OSError("the line broke"))
            await trio.sleep(20.0)
        waits = [after - before for before, after in pairwise(ear.opened_s)]
        assert waits == [1.0, 21.0, 22.0, 24.0]
        assert len(caller.events(ListeningFailed)) == 4


async def test_an_ear_that_is_refused_for_good_is_not_opened_again(autojump_clock) -> None:
    """A wrong key stays wrong."""
    ear = FailingEar(until_s=1000.0, error=VendorError("ear", "no such key", retryable=False))
    async with open_call(app_with(ear), own_speech=True, expect_errors=True) as caller:
        await trio.sleep(300.0)
        assert ear.opened_s == [0.0]
        assert caller.events(ListeningResumed) == []
