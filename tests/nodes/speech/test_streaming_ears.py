"""A call whose ear streams: its facts become the caller's turns, in virtual time."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
import trio

from bargein import Call, ChatNode
from bargein.events import (
    AgentError,
    ListeningFailed,
    TurnDecided,
    TurnLikelyOver,
    TurnWentOn,
    UserAudio,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
    WordTiming,
)
from bargein.speech import (
    EarFact,
    EarRestarted,
    PerhapsOver,
    Speech,
    TurnOver,
    VoiceBegan,
    WentOn,
    WordsHeard,
)
from bargein.testing import ScriptedModel, open_call
from bargein.user_turns import (
    EarEndpointing,
    EarliestEndpointing,
    FixedEndpointing,
    SurestEndpointing,
    TurnSettings,
    TurnTaking,
)


class ScriptedEar:
    """An ear that reports facts on demand, and keeps what it hears."""

    sample_rate_hz = 16_000

    def __init__(self) -> None:
        self.heard = bytearray()
        self.is_deaf = False
        self.closed = 0
        self._send, self._facts = trio.open_memory_channel[EarFact | Exception](math.inf)

    def tell(self, *facts: EarFact | Exception) -> None:
        for fact in facts:
            self._send.send_nowait(fact)

    def open_stream(self) -> AbstractAsyncContextManager[ScriptedEar]:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[ScriptedEar]:
        try:
            yield self
        finally:
            self.closed += 1

    async def send(self, pcm: bytes) -> None:
        if self.is_deaf:
            await trio.sleep_forever()
        self.heard += pcm

    async def end_turn(self) -> None:
        self.tell(TurnOver("as asked"))

    async def receive(self) -> EarFact:
        fact = await self._facts.receive()
        if isinstance(fact, Exception):
            raise fact
        return fact


@pytest.fixture
def ear() -> ScriptedEar:
    """Return an ear that says nothing."""
    return ScriptedEar()


def agent_with(ear: ScriptedEar, *answers: str, **options: Any) -> Callable[[Call], Any]:
    """Return an agent that hears with an ear."""

    async def answer(call: Call) -> None:
        Speech(ear, **options).attach(call)
        call.converse(ChatNode(ScriptedModel(*(answers or ["Sure."] * 3)), "Be brief."))

    return answer


def turns_of(caller: Any) -> list[str]:
    """Return the final words of the caller's turns."""
    return [e.content for e in caller.events(UserTranscriptionReceived) if e.final]


async def test_a_turn_of_the_ear_is_a_turn_of_the_caller(autojump_clock, ear):
    """The ear's own endpointing ends the turn in the step in which it says so."""
    async with open_call(agent_with(ear)) as caller:
        ear.tell(VoiceBegan(), WordsHeard("a large"))
        await trio.sleep(0.5)
        assert len(caller.events(UserStartedSpeaking)) == 1
        await trio.sleep(5)  # longer than our own rules wait
        assert caller.events(UserStoppedSpeaking) == []
        ear.tell(TurnOver("a large latte", 0.9))
        await trio.sleep(0.01)
        assert len(caller.events(UserStoppedSpeaking)) == 1
        assert turns_of(caller) == ["a large latte"]
        (decided,) = [e for e in caller.events(TurnDecided) if e.about == "end"]
        assert decided.rule == "EarEndpointing"
        await trio.sleep(2)
        assert caller.heard == "Sure."


async def test_words_in_segments_are_one_turn(autojump_clock, ear):
    """Words that come in parts are put together in order."""
    async with open_call(agent_with(ear)) as caller:
        ear.tell(VoiceBegan(), WordsHeard("a large", 0, final=True), WordsHeard("latt", 1))
        ear.tell(WordsHeard("latte", 1, final=True), TurnOver())
        await trio.sleep(0.1)
        assert turns_of(caller) == ["a large latte"]


async def test_what_the_ear_knows_of_the_words_reaches_their_event(autojump_clock, ear):
    """Language, speaker, confidence and times come with the final words of the turn."""
    times = (WordTiming("un", 0.2, 0.4), WordTiming("café,", 0.5, 0.9))
    async with open_call(agent_with(ear)) as caller:
        ear.tell(VoiceBegan(), WordsHeard("a café"))
        ear.tell(TurnOver("un café,", 0.9, language="fr", speaker="A", words=times))
        await trio.sleep(0.1)
        *_, said = caller.events(UserTranscriptionReceived)
        assert said == UserTranscriptionReceived(
            content="un café,", confidence=0.9, language="fr", speaker="A", words=times
        )


async def test_the_language_of_most_words_counts(autojump_clock, ear):
    """Segments in several languages are a turn in that of most words; a gap leaves no times."""
    times = (WordTiming("two", 0.0, 0.2),)
    async with open_call(agent_with(ear)) as caller:
        ear.tell(VoiceBegan(), WordsHeard("deux grands cafés", 0, final=True, language="fr"))
        ear.tell(WordsHeard("two", 1, final=True, language="en", words=times), TurnOver())
        await trio.sleep(0.1)
        *_, said = caller.events(UserTranscriptionReceived)
        assert (said.content, said.language, said.words) == ("deux grands cafés two", "fr", ())


async def test_words_behind_our_own_end_keep_their_times(autojump_clock, ear):
    """What was answered already takes its times with it."""
    first, second = WordTiming("latte", 0.1, 0.4), WordTiming("please", 2.0, 2.3)
    turns = TurnTaking(TurnSettings(endpointing=FixedEndpointing(0.3)))
    async with open_call(agent_with(ear, turns=turns)) as caller:
        ear.tell(VoiceBegan(), WordsHeard("latte", words=(first,)), PerhapsOver(0.5))
        await trio.sleep(1)
        ear.tell(WentOn(), TurnOver("latte please", words=(first, second)))
        await trio.sleep(2)
        final = [e for e in caller.events(UserTranscriptionReceived) if e.final]
    assert [(e.content, e.words) for e in final] == [("latte", (first,)), ("please", (second,))]


async def test_perhaps_over_begins_an_answer_that_nobody_hears(autojump_clock, ear):
    """PerhapsOver is published as TurnLikelyOver, and WentOn as TurnWentOn."""
    async with open_call(agent_with(ear)) as caller:
        ear.tell(VoiceBegan(), WordsHeard("my number is"), PerhapsOver(0.5))
        await trio.sleep(0.2)
        ear.tell(WentOn(), WordsHeard("my name is Ada"), PerhapsOver(0.6))
        await trio.sleep(0.2)
        likely = [e.content for e in caller.events(TurnLikelyOver)]
        assert likely == ["my name is Ada"]  # no sentence ends in "is"
        ear.tell(
            WentOn(), WordsHeard("my name is Ada Lovelace"), TurnOver("my name is Ada Lovelace")
        )
        await trio.sleep(0.2)
        assert len(caller.events(TurnWentOn)) == 1
        assert turns_of(caller) == ["my name is Ada Lovelace"]


async def test_the_caller_interrupts_through_the_ear(autojump_clock, ear):
    """Words over the agent's answer interrupt it, and the history has exactly what was heard."""
    long = "One two three four five six seven eight nine ten eleven twelve."
    async with open_call(agent_with(ear, long, "Yes?")) as caller:
        ear.tell(VoiceBegan(), TurnOver("count"))
        await trio.sleep(1.5)
        ear.tell(VoiceBegan(), WordsHeard("stop it please"))
        await trio.sleep(0.2)
        said = caller.heard
        assert 0 < len(said) < len(long)
        ear.tell(TurnOver("stop it please"))
        await trio.sleep(2)
        assert caller.heard.endswith("Yes?")


async def test_a_restarted_ear_begins_the_turn_anew(autojump_clock, ear):
    """Words that the ear heard before it lost its line are not in the turn twice."""
    async with open_call(agent_with(ear)) as caller:
        ear.tell(VoiceBegan(), WordsHeard("a large", 0, final=True), WordsHeard("latte", 1))
        await trio.sleep(0.3)
        ear.tell(
            EarRestarted(), VoiceBegan(), WordsHeard("a large latte", 0, final=True), TurnOver()
        )
        await trio.sleep(0.1)
        assert turns_of(caller) == ["a large latte"]


async def test_all_audio_reaches_the_ear(autojump_clock, ear):
    """Each frame of the caller reaches the ear once and in order."""
    async with open_call(agent_with(ear)) as caller:
        for number in range(50):
            caller.publish(UserAudio(bytes([number, 0]) * 320))
            await trio.sleep(0.02)
        await trio.sleep(0.1)
    assert bytes(ear.heard) == b"".join(bytes([n, 0]) * 320 for n in range(50))
    assert ear.closed == 1


async def test_an_ear_that_takes_nothing_delays_nobody(autojump_clock, ear):
    """Frames for an ear that is stuck are dropped after five seconds of them."""
    ear.is_deaf = True
    async with open_call(agent_with(ear)) as caller:
        for _ in range(1000):
            caller.publish(UserAudio(b"\0\0" * 320))
        await trio.sleep(1)
        ear.tell(VoiceBegan(), TurnOver("hello"))
        await trio.sleep(1)
        assert turns_of(caller) == ["hello"]


async def test_an_ear_that_is_lost_is_told(autojump_clock, ear):
    """A lost ear is an error that developers see, and an event; the call goes on."""
    async with open_call(agent_with(ear), expect_errors=True) as caller:
        ear.tell(RuntimeError("no key"))
        await trio.sleep(0.1)
        assert [e.error for e in caller.events(ListeningFailed)] == ["RuntimeError"]
        assert len(caller.events(AgentError)) == 1
        for _ in range(1000):
            caller.publish(UserAudio(b"\0\0" * 320))


@pytest.mark.parametrize(
    ("endpointing", "ends_s"),
    [
        (EarEndpointing(), 1.0),
        (EarEndpointing(longest_s=0.8), 0.8),
        (EarliestEndpointing(EarEndpointing(), FixedEndpointing(0.5)), 0.5),
        (EarliestEndpointing(EarEndpointing(), FixedEndpointing(3)), 1.0),
        (SurestEndpointing(EarEndpointing(), FixedEndpointing(0.5)), 1.0),
        (SurestEndpointing(EarEndpointing(), FixedEndpointing(2)), 2.0),
        (FixedEndpointing(0.7), 0.7),
    ],
)
async def test_who_decides_is_a_setting(autojump_clock, ear, endpointing, ends_s):
    """The ear, our rules, whichever is earlier, or both together end the turn."""
    turns = TurnTaking(TurnSettings(endpointing=endpointing))
    async with open_call(agent_with(ear, turns=turns)) as caller:
        ear.tell(VoiceBegan(), WordsHeard("a latte please"))
        await trio.sleep(0.5)
        ear.tell(PerhapsOver(0.5))
        began_s = caller.now_s
        await trio.sleep(1)
        ear.tell(TurnOver("a latte please"))
        await trio.sleep(3)
        (over,) = [r for r in caller.received if isinstance(r.event, UserStoppedSpeaking)]
        assert over.at_s - began_s == pytest.approx(ends_s, abs=0.01)
        assert turns_of(caller) == ["a latte please"]


async def test_words_behind_our_own_end_are_the_next_turn(autojump_clock, ear):
    """If our rules end the turn before the ear, only later words make a new turn."""
    turns = TurnTaking(TurnSettings(endpointing=FixedEndpointing(0.3)))
    async with open_call(agent_with(ear, turns=turns)) as caller:
        ear.tell(VoiceBegan(), WordsHeard("a latte"), PerhapsOver(0.5))
        await trio.sleep(1)
        assert turns_of(caller) == ["a latte"]
        ear.tell(WentOn(), WordsHeard("a latte and two muffins"))
        ear.tell(TurnOver("a latte and two muffins"))
        await trio.sleep(2)
        assert turns_of(caller) == ["a latte", "and two muffins"]


@pytest.mark.parametrize("wrong", [7, ScriptedEar, "deepgram"])
def test_no_ear_is_an_error(wrong):
    """The constructor of the stack raises for something that is not an ear."""
    with pytest.raises(TypeError, match=r"ear=\) (is an object with open_stream|needs an inst)"):
        Speech(wrong)


@pytest.mark.parametrize("endpointing", [EarliestEndpointing, SurestEndpointing])
def test_no_strategy_is_an_error(endpointing):
    """A choice of nothing is refused where it is made."""
    with pytest.raises(ValueError, match="none"):
        endpointing()
    with pytest.raises(TypeError, match="wait_s"):
        endpointing(FixedEndpointing)
