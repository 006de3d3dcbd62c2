"""WhoAnswered: a verdict while the agent talks, and a message behind the tone."""

# ruff: noqa: RUF001 (there are Cyrillic words)

from __future__ import annotations

import math
from array import array
from collections.abc import Awaitable, Callable

import pytest
import trio

from bargein import Call
from bargein.events import (
    AnsweredBy,
    EndCall,
    ToneHeard,
    UserAudio,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
    VoiceStarted,
    VoiceStopped,
)
from bargein.phone import WhoAnswered
from bargein.testing import Caller, open_call, open_phone

HELLO = "Hello, this is the practice of Doctor Lee. It is about your appointment on Friday. "
MESSAGE = "Your appointment is on Friday at ten. Goodbye."


class Outbound:
    """An agent that calls somebody: it talks at once, and leaves a message on a voicemail."""

    def __init__(self, languages: list[str] | None = None) -> None:
        self.languages = languages
        self.who: WhoAnswered

    async def answer(self, call: Call) -> None:
        self.who = WhoAnswered(call, languages=self.languages)
        place = call.bridge(name="caller of patients")
        place.on(AnsweredBy, who="voicemail").map(lambda: self.leave(call))
        call.say(HELLO)

    async def leave(self, call: Call) -> None:
        await (await self.who.leave(MESSAGE))
        call.publish(EndCall())


def verdicts(caller: Caller) -> list[tuple[str, str]]:
    return [(event.who, event.basis) for event in caller.events(AnsweredBy)]


async def over(caller: Caller) -> None:
    await caller.call.ended.wait()


def says(caller: Caller, text: str, *, final: bool = True) -> None:
    caller.publish(UserStartedSpeaking())
    caller.publish(UserTranscriptionReceived(content=text, final=final))
    if final:
        caller.publish(UserStoppedSpeaking())


def tone(hz: float, seconds: float, *others: float, rate_hz: int = 8_000) -> array[int]:
    parts = (hz, *others)
    return array(
        "h",
        (
            round(sum(6_000 * math.sin(2 * math.pi * each * n / rate_hz) for each in parts))
            for n in range(round(seconds * rate_hz))
        ),
    )


async def play(caller: Caller, sound: array[int], rate_hz: int = 8_000) -> None:
    """Send sound in real time, in frames of 20 ms."""
    frame = rate_hz // 50
    for start in range(0, len(sound), frame):
        pcm = sound[start : start + frame].tobytes()
        caller.publish(UserAudio(pcm=pcm, sample_rate_hz=rate_hz))
        await trio.sleep(0.02)


async def test_words_of_a_voicemail_cut_the_agent_and_the_message_waits(autojump_clock):
    """The agent talks at once, the verdict interrupts, and silence stands for the tone."""
    agent = Outbound()
    async with open_call(agent.answer, chars_per_s=15) as caller:
        await caller.at(2.0)
        assert caller.heard.startswith("Hello, this is the practice")
        caller.publish(
            UserTranscriptionReceived(content="I can't take your call, please", final=False)
        )
        assert verdicts(caller) == [("voicemail", "words")]
        assert caller.events(AnsweredBy)[0].after_ms == 2000.0
        await caller.at(6.0)
        assert MESSAGE not in caller.heard
        says(caller, "I can't take your call, please leave a message after the tone.")
        await caller.at(8.4)
        assert MESSAGE not in caller.heard
        await over(caller)
        lines = caller.heard.splitlines()
    assert "about your appointment" not in lines[0]
    assert lines[1] == MESSAGE
    assert caller.call.end_reason == "agent_ended"


async def test_the_message_is_left_behind_the_tone(autojump_clock):
    """At the end of the tone, which by itself tells a voicemail, too."""
    agent = Outbound()
    async with open_call(agent.answer, chars_per_s=15) as caller:
        sound = array("h", bytes(16_000)) + tone(1_000, 0.4) + array("h", bytes(8_000))
        await play(caller, sound)
        [heard] = caller.events(ToneHeard)
        assert verdicts(caller) == [("voicemail", "sound")]
        assert 990 < heard.frequency_hz < 1_010
        assert 0.3 < heard.lasted_s < 0.5
        assert caller.now_s < 2.0
        await over(caller)
    assert caller.heard.endswith(MESSAGE)


@pytest.mark.parametrize(
    "sound",
    [
        tone(770, 0.3, 1_336),
        tone(425, 1.0),
        tone(440, 1.0, 480),
        tone(950, 0.33) + tone(1_400, 0.33) + tone(1_800, 0.33),
        tone(1_000, 0.05),
        tone(1_000, 2.6),
        tone(220, 0.5, 440, 660, 880),
    ],
    ids=["a key", "Europe rings", "America rings", "no such number", "a click", "a fax", "a note"],
)
async def test_other_tones_are_no_voicemail(sound: array[int], autojump_clock):
    """Keys, tones of the network, clicks and instruments are not taken for the beep."""

    async def answer(call: Call) -> None:
        WhoAnswered(call)

    async with open_call(answer) as caller:
        await play(caller, array("h", bytes(8_000)) + sound + array("h", bytes(8_000)))
        assert not caller.events(ToneHeard)
        assert not [one for one in verdicts(caller) if one[0] == "voicemail"]


@pytest.mark.parametrize(
    ("language", "text", "who"),
    [
        ("en", "Hello?", "person"),
        ("en", "Good morning, Smith's bakery, this is Jo speaking, how can I help you?", "person"),
        ("en", "You've reached Ann. I'm not available, leave a message.", "voicemail"),
        ("en", "Thanks for calling. For sales, press one. For service, press two.", "menu"),
        ("en", "Press 5 to leave a message", "menu"),
        ("en", "Before I connect you, please say your name and why you're calling.", "screening"),
        ("de", "Ja bitte?", "person"),
        ("de", "Bitte sprechen Sie Ihre Nachricht nach dem Signalton.", "voicemail"),
        ("de", "Für den Vertrieb drücken Sie die Eins.", "menu"),
        ("de", "Nennen Sie bitte Ihren Namen und den Grund Ihres Anrufs.", "screening"),
        ("es", "¿Diga?", "person"),
        ("es", "Por favor, deje su mensaje después de la señal.", "voicemail"),
        ("es", "Para ventas, marque uno.", "menu"),
        ("es", "Diga su nombre y el motivo de su llamada.", "screening"),
        ("fr", "Allô ?", "person"),
        ("fr", "Veuillez laisser un message après le bip sonore.", "voicemail"),
        ("fr", "Pour le service client, tapez 2.", "menu"),
        ("fr", "Dites votre nom et la raison de votre appel.", "screening"),
        ("it", "Pronto?", "person"),
        ("it", "Lasciate un messaggio dopo il segnale acustico.", "voicemail"),
        ("it", "Per le vendite prema uno.", "menu"),
        ("it", "Dica il suo nome e il motivo della chiamata.", "screening"),
        ("ru", "Алло?", "person"),
        ("ru", "Оставьте сообщение после сигнала.", "voicemail"),
        ("ru", "Для связи с оператором нажмите ноль.", "menu"),
        ("ru", "Пожалуйста, представьтесь и назовите цель звонка.", "screening"),
    ],
)
async def test_words_tell_who_answers(language: str, text: str, who: str, autojump_clock):
    """In six languages, and at once when the words are known."""

    async def answer(call: Call) -> None:
        WhoAnswered(call, languages=[language])

    async with open_call(answer) as caller:
        await caller.at(1.0)
        says(caller, text)
        assert verdicts(caller) == [(who, "words")]
        assert caller.events(AnsweredBy)[0].after_ms == 1000.0


async def test_silence_is_told_and_put_right(autojump_clock):
    """After five seconds nobody is there; then somebody is."""

    async def answer(call: Call) -> None:
        WhoAnswered(call)

    async with open_call(answer) as caller:
        await caller.at(4.9)
        assert verdicts(caller) == []
        await caller.at(5.1)
        assert verdicts(caller) == [("silence", "time")]
        says(caller, "Hello?")
        assert verdicts(caller) == [("silence", "time"), ("person", "words")]


async def test_a_person_turns_out_to_be_a_voicemail(autojump_clock):
    """A greeting that pauses; what a person says later about messages changes nothing."""

    async def answer(call: Call) -> None:
        WhoAnswered(call)

    async with open_call(answer) as caller:
        says(caller, "Hi, this is Ann.")
        await caller.at(2.0)
        says(caller, "I can't come to the phone right now.")
        assert verdicts(caller) == [("person", "words"), ("voicemail", "words")]
    async with open_call(answer) as caller:
        says(caller, "Hello?")
        await caller.at(40.0)
        says(caller, "Could you leave a message after the tone?")
        assert verdicts(caller) == [("person", "words")]


@pytest.mark.parametrize(("lasts_s", "who"), [(0.6, "person"), (4.0, "voicemail")])
async def test_without_words_time_tells(lasts_s: float, who: str, autojump_clock):
    """A short sound is a person's, a long one a machine's, a second after it has ended."""

    async def answer(call: Call) -> None:
        WhoAnswered(call)

    async with open_call(answer) as caller:
        await caller.at(0.5)
        caller.publish(VoiceStarted())
        await trio.sleep(lasts_s)
        caller.publish(VoiceStopped())
        await trio.sleep(0.9)
        assert verdicts(caller) == []
        await trio.sleep(0.2)
        assert verdicts(caller) == [(who, "time")]


async def test_whoever_talks_on_and_on_is_a_voicemail(autojump_clock):
    """Also while no word is known yet."""

    async def answer(call: Call) -> None:
        WhoAnswered(call)

    async with open_call(answer) as caller:
        caller.publish(VoiceStarted())
        await caller.at(5.9)
        assert verdicts(caller) == []
        await caller.at(6.1)
        assert verdicts(caller) == [("voicemail", "time")]


async def test_call_screening_leads_to_the_person(autojump_clock):
    """Who then says hello, and is told from the service."""

    async def answer(call: Call) -> None:
        WhoAnswered(call)

    async with open_call(answer) as caller:
        says(caller, "Say your name and why you're calling.")
        await caller.at(4.0)
        says(caller, "Yes, hello?")
        assert verdicts(caller) == [("screening", "words"), ("person", "words")]


async def test_a_carriers_verdict_counts(autojump_clock):
    """It cuts as ours does; what words have told already, it does not change."""
    agent = Outbound()
    async with open_call(agent.answer, chars_per_s=15) as caller:
        await caller.at(1.0)
        caller.publish(AnsweredBy(who="voicemail", basis="carrier", after_ms=1000))
        assert agent.who.answered_by is not None
        assert agent.who.answered_by.basis == "carrier"
        await over(caller)
        assert caller.heard.endswith(MESSAGE)
    async with open_call(agent.answer, chars_per_s=15) as caller:
        says(caller, "Please leave a message after the tone.")
        caller.publish(AnsweredBy(who="person", basis="carrier", after_ms=1000))
        assert agent.who.answered_by.who == "voicemail"
        await caller.at(0.1)
        assert verdicts(caller)[-1] == ("voicemail", "words")


async def test_a_verdict_interrupts_chains_as_any_event(autojump_clock):
    """Whoever does not want a verdict to cut everything routes it."""

    async def answer(call: Call) -> None:
        WhoAnswered(call, cuts=False)
        call.say("One. Two. Three. Four. Five. Six.")
        talk = call.bridge(name="talk")
        talk.on(EndCall)

    async with open_call(answer, chars_per_s=10) as caller:
        await caller.at(0.5)
        caller.publish(
            UserTranscriptionReceived(content="leave a message after the tone", final=False)
        )
        await caller.quiet()
        assert verdicts(caller) == [("voicemail", "words")]
        assert caller.heard == "One. Two. Three. Four. Five. Six."


async def test_waiting_can_be_cancelled_everywhere(autojump_clock):
    """For a verdict, for the tone, and before a message: nothing is said then."""
    whos: list[WhoAnswered] = []

    async def answer(call: Call) -> None:
        whos.append(WhoAnswered(call))

    waits: list[Callable[[WhoAnswered], Awaitable[object]]] = [
        lambda who: who.verdict(),
        lambda who: who.recording(),
        lambda who: who.leave(MESSAGE),
    ]
    async with open_call(answer) as caller:
        for wait in waits:
            with trio.move_on_after(1.0) as scope:
                await wait(whos[0])
            assert scope.cancelled_caught
        assert caller.heard == ""
        assert not await whos[0].recording(within_s=1.0)
        with trio.fail_after(10):
            assert (await whos[0].verdict()).who == "silence"


async def test_unknown_languages_are_named(autojump_clock):
    """What nothing is known of is an error when it is asked for."""

    async def answer(call: Call) -> None:
        with pytest.raises(ValueError, match=r"knows de, en, .*, not 'xx'"):
            WhoAnswered(call, languages=["xx"])
        with pytest.raises(TypeError, match=r"not 'en'"):
            WhoAnswered(call, languages="en")

    async with open_call(answer):
        pass


async def test_a_voicemail_answers_through_a_carrier(autojump_clock):
    """The whole way: webhook, socket, text; silence, and the message."""
    agent = Outbound()
    async with open_phone(agent.answer) as phone:
        await trio.sleep(1.5)
        await phone.says("Hi, you've reached Ann, please leave a message after the tone.")
        await phone.quiet()
        assert agent.who.answered_by is not None
        assert agent.who.answered_by.who == "voicemail"
        assert MESSAGE in phone.heard
        assert "your appointment on Friday. " not in phone.heard
