"""The voice of the test kit: it takes the time of speech, and says where each word lies."""

from __future__ import annotations

import trio

from bargein import Call
from bargein.events import (
    AgentAudio,
    AgentAudioComplete,
    AgentResponse,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)
from bargein.testing import SimulatedVoice, open_call


async def spoken(*pieces: str, chars_per_s: float = 10) -> list[AgentAudio]:
    """The audio that the voice gives for one answer."""
    audio: list[AgentAudio] = []

    async def answer(call: Call) -> None:
        bridge = call.bridge(name="agent")
        stream = [AgentResponse(content=piece) for piece in pieces]
        bridge.on(UserStoppedSpeaking).stream(lambda m: iter(stream)).broadcast()
        listener = call.bridge(name="listener", is_agent=False)
        listener.on([AgentAudio, AgentAudioComplete]).map(lambda m: audio.append(m.event))

    async with open_call(answer, chars_per_s=chars_per_s) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert caller.heard == "".join(pieces)
    assert isinstance(audio.pop(), AgentAudioComplete)
    return audio


async def test_whole_words_are_said(autojump_clock):
    """A word whose end is not known yet waits for it, over any number of pieces."""
    audio = await spoken("One tw", "o th", "ree")
    assert [piece.text for piece in audio] == ["One ", "two ", "three"]


async def test_every_character_takes_its_time(autojump_clock):
    """Ten characters a second are 100 ms each, silence at one sample a millisecond."""
    (audio,) = await spoken("One two ")
    assert audio.pcm == bytes(2 * 800)
    assert audio.sample_rate_hz == 1000
    assert [(w.text, w.start_s, w.end_s) for w in audio.words] == [
        ("One", 0.0, 0.3), ("two", 0.4, 0.7),
    ]  # fmt: skip


async def test_rounding_does_not_add_up(autojump_clock):
    """A hundred pieces of a third of a millisecond are 33 ms, not 0 and not 100."""
    audio = await spoken(*["a "] * 100, chars_per_s=6000)
    assert sum(len(piece.pcm) // 2 for piece in audio) == 33


async def test_white_space_and_nothing_are_said(autojump_clock):
    """Odd texts cost their time and break nothing."""
    audio = await spoken("", "  ", "\n", "a")
    assert "".join(piece.text for piece in audio) == "  \na"


async def test_a_cut_utterance_is_forgotten(autojump_clock):
    """What waited to be said of it is not kept, nor said with the next."""

    async def answer(call: Call) -> None:
        async def generate(message: object) -> object:
            yield AgentResponse(content="Unfinish")
            await trio.sleep(5)

        chain = call.bridge(name="agent").on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking)
        chain.stream(generate).broadcast()

    voice = SimulatedVoice(10)
    async with voice.open():
        pass
    async with open_call(answer, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1)
        caller.publish(UserStartedSpeaking())
        await caller.quiet()
        assert caller.heard == ""
        assert await caller.call.say("Next") == "completed"
        assert caller.heard == "Next"


async def test_chinese_is_heard_by_character(autojump_clock):
    """A text without spaces is one piece of audio, and yet heard character by character."""

    async def answer(call: Call) -> None:
        await call.say("你好世界。再见")

    async with open_call(answer, chars_per_s=10) as caller:
        await caller.at(0.35)
        caller.publish(UserStartedSpeaking())
        assert caller.heard == "你好世"
