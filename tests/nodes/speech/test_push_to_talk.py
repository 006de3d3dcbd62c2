"""A caller who holds a key while they talk, and an end of the turn that is forced."""

from __future__ import annotations

import pytest
import trio

from bargein.events import (
    TalkKeyChanged,
    TurnDecided,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bargein.speech import PerhapsOver, TurnOver, VoiceBegan, WordsHeard
from bargein.testing import Caller, open_call
from bargein.user_turns import FixedEndpointing, TurnSettings, TurnTaking

from .failing import stream
from .test_streaming_ears import ScriptedEar, agent_with


class AskedEar(ScriptedEar):
    """An ear that, asked for the end of the turn, tells the words that it still has."""

    still = ""

    async def end_turn(self) -> None:
        """Tell them."""
        words, self.still = self.still, ""
        if words:
            self.tell(TurnOver(words))


@pytest.fixture
def ear() -> AskedEar:
    """Return an ear that says nothing."""
    return AskedEar()


def turns(caller: Caller) -> list[str]:
    """Return the words of the turns that are over."""
    return [e.content for e in caller.events(UserTranscriptionReceived) if e.final]


async def test_a_key_that_is_down_holds_the_turn_open(autojump_clock, ear):
    """No silence, and no ear, ends a turn while the key is down; its release does."""
    async with open_call(agent_with(ear)) as caller:
        caller.publish(TalkKeyChanged(down=True))
        ear.tell(VoiceBegan(), WordsHeard("a latte"), PerhapsOver(0.9), TurnOver("a latte"))
        await trio.sleep(10)
        assert turns(caller) == []
        caller.publish(TalkKeyChanged(down=False))
        await trio.sleep(0.01)
        assert turns(caller) == ["a latte"]
        (decided,) = [e for e in caller.events(TurnDecided) if e.about == "end"]
        assert (decided.decision, decided.rule) == ("forced", "talk_key")
        await caller.quiet()
        assert caller.heard == "Sure."


async def test_the_ear_is_asked_for_the_last_words(autojump_clock, ear):
    """Released amid a word, the key has the ear end its turn; the turn has the words of that."""
    async with open_call(agent_with(ear)) as caller:
        caller.publish(TalkKeyChanged(down=True))
        ear.still = "a large latte"
        ear.tell(VoiceBegan(), WordsHeard("a large"))
        await trio.sleep(0.5)
        caller.publish(TalkKeyChanged(down=False))
        released_s = caller.now_s
        await trio.sleep(0.1)
        assert turns(caller) == ["a large latte"]
        assert caller.now_s - released_s < 0.2


@pytest.mark.parametrize("is_deaf", [False, True])
async def test_words_that_stay_away_are_waited_for_in_bounded_time(autojump_clock, is_deaf):
    """An ear that does not answer costs a second and a half, and the words so far are the turn."""

    class Silent(ScriptedEar):
        async def end_turn(self) -> None:
            if is_deaf:
                await trio.sleep_forever()

    ear = Silent()
    async with open_call(agent_with(ear)) as caller:
        caller.publish(TalkKeyChanged(down=True))
        ear.tell(VoiceBegan(), WordsHeard("a large"))
        await trio.sleep(0.5)
        caller.publish(TalkKeyChanged(down=False))
        await trio.sleep(1.49)
        assert turns(caller) == []
        await trio.sleep(0.02)
        assert turns(caller) == ["a large"]


async def test_an_app_ends_a_turn_without_a_key(autojump_clock, ear):
    """Code that knows that a turn is over can force its end."""
    taking = TurnTaking(TurnSettings(endpointing=FixedEndpointing(5)))
    async with open_call(agent_with(ear, turns=taking)) as caller:
        ear.tell(VoiceBegan(), WordsHeard("four nine two", final=True), PerhapsOver(0.2))
        await trio.sleep(0.5)
        assert turns(caller) == []
        caller.call.end_turn()
        await trio.sleep(0.01)
        assert turns(caller) == ["four nine two"]
        caller.call.end_turn()
        await trio.sleep(5)
        assert turns(caller) == ["four nine two"]


async def test_a_transport_tells_of_the_key_by_a_verb(autojump_clock, ear):
    """Pressed, it holds the turn open; released, it ends it."""
    async with open_call(agent_with(ear)) as caller:
        caller.call.talk(down=True)
        ear.tell(VoiceBegan(), TurnOver("a latte"))
        await trio.sleep(5)
        assert turns(caller) == []
        caller.call.talk(down=False)
        await trio.sleep(0.01)
        assert turns(caller) == ["a latte"]
        assert [e.down for e in caller.events(TalkKeyChanged)] == [True, False]
        with pytest.raises(TypeError, match="down"):
            caller.call.talk(down="yes")  # type: ignore[arg-type]


async def test_a_key_without_a_word_is_no_turn(autojump_clock, ear):
    """Pressing the key without speaking makes no turn, and the next turn works as usual."""
    async with open_call(agent_with(ear)) as caller:
        for _ in range(3):
            caller.publish(TalkKeyChanged(down=True))
            await trio.sleep(0.3)
            caller.publish(TalkKeyChanged(down=False))
            await trio.sleep(0.3)
        assert caller.events(UserStoppedSpeaking) == []
        ear.tell(VoiceBegan(), TurnOver("a latte"))
        await trio.sleep(0.1)
        assert turns(caller) == ["a latte"]


@pytest.mark.parametrize("is_on", [True, False])
async def test_a_line_that_drops_releases_the_key(autojump_clock, ear, is_on):
    """If the release of the key is never reported, the turn still ends, and so does the next."""
    async with open_call(agent_with(ear)) as caller:
        caller.publish(TalkKeyChanged(down=True))
        ear.tell(VoiceBegan(), WordsHeard("a latte", final=True))
        if not is_on:
            ear.tell(PerhapsOver(0.9))
        await stream(caller.call, bytes(32_000))
        caller.call.hold_speech("connection")  # as the server does then
        await trio.sleep(10)
        caller.call.release_speech("connection")
        assert turns(caller) == ["a latte"]
        await stream(caller.call, bytes(32_000))
        ear.tell(VoiceBegan(), TurnOver("and a muffin"))
        await trio.sleep(0.1)
        assert turns(caller) == ["a latte", "and a muffin"]


async def test_a_key_that_is_down_when_the_line_comes_back_still_counts(autojump_clock, ear):
    """A client that tells it again holds the turn open again."""
    async with open_call(agent_with(ear)) as caller:
        caller.publish(TalkKeyChanged(down=True))
        await stream(caller.call, bytes(32_000))
        await trio.sleep(5)
        caller.publish(TalkKeyChanged(down=True))
        ear.tell(VoiceBegan(), WordsHeard("a latte"), TurnOver("a latte"))
        await stream(caller.call, bytes(64_000))
        assert turns(caller) == []
        caller.publish(TalkKeyChanged(down=False))
        await trio.sleep(0.1)
        assert turns(caller) == ["a latte"]
