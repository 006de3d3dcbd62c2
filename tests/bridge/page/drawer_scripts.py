"""Calls for the drawer: what a watched call tells, at the times at which it would be told.

``drawer`` is a conversation with one of each: a cough, an acknowledgement, an interruption; for a
page whose microphone hears ``microphone()``.  ``flood`` tells thousands of events.

Run as a program, it writes that microphone's sound to the WAV file that its argument names.
"""

from __future__ import annotations

import array
import functools
import math
import random
import sys
import wave
from collections.abc import Callable, Iterator
from typing import Any

import trio

OUTPUT_HZ = 24_000
MICROPHONE_HZ = 48_000
QUESTION_S, COUGH_S, MHM_S, STOP_S = 4.0, 6.7, 9.1, 11.9
"""When the caller asks, coughs, acknowledges and interrupts, in seconds of ``microphone()``."""
LOUD = 1500
APART = 30
"""Sounds with more frames of silence between them (20 ms each) are two."""
QUESTION = "What kinds of coffee do you have?"

ONSET_S = 0.07
"""From the first sound until voice activity is known."""


def speech(seconds: float, rate: int, seed: int, loudness: float = 0.35) -> bytes:
    """PCM16 that looks like speech: syllables of a buzz, words, and pauses between them."""
    chance = random.Random(seed)
    wave = array.array("h")
    while len(wave) < seconds * rate:
        for _ in range(chance.randint(3, 9)):
            wave.extend(_syllable(chance, rate, loudness))
        wave.extend(array.array("h", bytes(2 * round(chance.uniform(0.1, 0.3) * rate))))
    return wave[: round(seconds * rate)].tobytes()


def _syllable(chance: random.Random, rate: int, loudness: float) -> Iterator[int]:
    length = round(chance.uniform(0.09, 0.22) * rate)
    peak = loudness * chance.uniform(0.3, 1.0)
    step = 2 * math.pi * chance.uniform(110, 180) / rate
    for n in range(length):
        envelope = math.sin(math.pi * n / length) ** 0.7
        buzz = math.sin(step * n) * 0.6 + math.sin(3.1 * step * n) * 0.3 + chance.gauss(0, 0.06)
        yield round(32_767 * peak * envelope * max(-1.0, min(1.0, buzz)))


@functools.cache
def answer() -> bytes:
    """What the agent says: 10 s, of which 2.5 s are made, since that takes its time."""
    return speech(2.5, OUTPUT_HZ, seed=3) * 4


def microphone(rate: int) -> bytes:
    """What the caller says: a question, a cough, "mhm" and an interruption, over 16 s."""
    said = [(QUESTION_S, 1.2), (COUGH_S, 0.25), (MHM_S, 0.35), (STOP_S, 1.4)]
    wave = array.array("h", bytes(2 * 16 * rate))
    for n, (at_s, seconds) in enumerate(said):
        piece = array.array("h", speech(seconds, rate, seed=n + 10, loudness=0.5))
        wave[round(at_s * rate) : round(at_s * rate) + len(piece)] = piece
    return wave.tobytes()


class Script:
    """Tells events as the server would, when it hears what they are about."""

    def __init__(self, call: Any) -> None:
        self.call = call
        self.began_s = trio.current_time()
        self.ids = 0
        self.voice_s = 0.0
        self.quiet_frames = APART
        self.voice = trio.Event()

    def hear(self, pcm: bytes) -> None:
        """Takes a frame of the microphone; a sound after some silence is a voice."""
        if max(array.array("h", pcm), default=0) <= LOUD:
            self.quiet_frames += 1
            return
        if self.quiet_frames >= APART:
            self.voice_s = trio.current_time()
            self.voice.set()
        self.quiet_frames = 0

    async def next_voice(self) -> None:
        """Waits for the caller's next sound, and then as long as it takes to notice it."""
        self.voice = trio.Event()
        await self.voice.wait()
        await self.after(ONSET_S)

    async def after(self, seconds: float) -> None:
        """Waits until so long after the caller's sound began."""
        await trio.sleep_until(self.voice_s + seconds)

    def tell(self, name: str, source: str = "call", /, **data: Any) -> None:
        self.ids += 1
        at_s = round(trio.current_time() - self.began_s, 4)
        answer = data.pop("answer", None)
        fields = {"answer": answer} if answer else {}
        self.call.send(
            "seen", at_s=at_s, name=name, source=source, id=self.ids, data=data, **fields
        )

    def metric(self, name: str, value: float) -> None:
        self.tell("call.metric", "ears", name=name, value=value, unit="s")

    def state(self, state: str) -> None:
        number = next(self.call.numbers)
        self.call.send("state", state=state, number=number)
        self.tell("call.state_changed", state=state, number=number)

    def route(self, verdict: str, why: str) -> None:
        self.tell(
            f"route.{verdict}",
            "barista",
            event="user.started_speaking",
            why=why,
            route="bridge.on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking).stream(…)",
        )

    def decided(self, decision: str, rule: str, voiced_s: float) -> None:
        values = {"voiced_s": round(voiced_s, 2), "min_duration_s": 0.5}
        self.tell(
            "turn.decided", "turns", about="barge_in", decision=decision, rule=rule, values=values
        )

    def hold(self) -> None:
        self.tell("voice.started", "ears")
        self.call.send("hold", on=True)
        self.tell("agent.speech_held", reason="barge_in")

    def release(self, held_s: float) -> None:
        held_s = round(held_s, 3)
        self.tell("agent.speech_released", reason="barge_in", held_s=held_s, respoken=False)
        self.call.send("hold", on=False)


async def converse(script: Script) -> None:
    """The conversation of ``drawer``: a question, its answer, and what the caller says over it."""
    await script.next_voice()
    script.tell("user.started_speaking", "ears")
    script.route("idle", "interrupt_on(UserStartedSpeaking): nothing was running")
    script.state("listening")
    await script.after(1.45)
    script.metric("listening.recogniser_s", 0.182)
    script.metric("listening.decided_s", 0.341)
    script.tell("user.transcription", "ears", content=QUESTION, final=True)
    script.call.send("transcript", role="user", text=QUESTION, final=True)
    script.tell("user.stopped_speaking", "ears")
    script.route("matched", "run 1")
    script.state("thinking")
    await script.after(1.65)
    script.metric("answer.first_text_s", 0.198)
    script.call.tell_story(0)
    script.tell("agent.response", "barista", content="We have espresso, cappuccino, ", answer=1)
    script.tell(
        "agent.tool_call", "barista", name="check_stock", id="t1", arguments={"item": "roll"}
    )
    await script.after(1.8)
    script.metric("answer.first_audio_s", 0.352)
    script.state("speaking")
    script.call.nursery.start_soon(script.call.stream, 1, answer())
    script.tell("agent.started_speaking", "voice", utterance=1)
    await false_alarm(script, 0.25, "noise", "false_interruption_timeout_s")
    await false_alarm(script, 0.35, "acknowledgement", "acknowledgements")
    await interruption(script)


async def false_alarm(script: Script, seconds: float, decision: str, rule: str) -> None:
    """A sound that holds the agent and lets it go on."""
    await script.next_voice()
    script.hold()
    await script.after(seconds)
    voiced_s = seconds - ONSET_S
    script.tell("voice.stopped", "ears", voiced_s=round(voiced_s, 2))
    script.decided(decision, rule, voiced_s)
    await script.after(seconds + 0.03)
    script.release(voiced_s + 0.03)


async def interruption(script: Script) -> None:
    """A voice that lasts: the agent is held, then cut."""
    await script.next_voice()
    script.hold()
    await script.after(0.57)
    script.decided("interruption", "min_duration_s", 0.5)
    script.tell("user.started_speaking", "ears")
    script.route("cut", "interrupt_on(UserStartedSpeaking): run 1")
    script.call.speech.cancel()
    script.call.clear(1, "barge_in")
    script.release(0.5)
    script.tell("agent.stopped_speaking", "voice", utterance=1, cut=True)
    script.state("listening")
    await script.after(1.9)
    script.metric("listening.decided_s", 0.296)
    script.tell("user.stopped_speaking", "ears")
    script.state("idle")


def drawer(call: Any) -> None:
    """Answers ``watch`` and tells all of a conversation."""
    answer()
    script = Script(call)

    def on_watch(on: bool, **_: Any) -> None:
        at_s = round(trio.current_time() - script.began_s, 4)
        call.send("watching", on=on, words=True, at_s=at_s)

    def on_flushed(utterance: int, played_ms: float, **_: Any) -> None:
        tell_cut(utterance=utterance, played_ms=played_ms)
        heard = {"heard": "We have espresso", "unheard": " and more", "at_ms": played_ms}
        script.tell("agent.speech_cut", utterance=utterance, **heard)

    tell_cut = call.on_playback_flushed
    call.on_playback_flushed = on_flushed
    call.on_watch = on_watch
    call.hear = script.hear
    call.nursery.start_soon(converse, script)
    call.state("idle")


def flood(call: Any) -> None:
    """Tells thousands of events at once when it is asked."""

    async def pour() -> None:
        script = Script(call)
        for n in range(7000):
            script.tell("call.metric", "ears", name="load", value=n, unit="")
            if n % 500 == 499:
                while call.out_send.statistics().current_buffer_used:  # noqa: ASYNC110 - no event
                    await trio.sleep(0.01)
        script.tell("agent.error", "barista", message="KeyError in .map(price)")

    def on_watch(on: bool, **_: Any) -> None:
        call.send("watching", on=on, words=False, at_s=0.0)
        if on:
            call.nursery.start_soon(pour)

    call.on_watch = on_watch
    call.state("idle")


SCRIPTS: dict[str, Callable[[Any], None]] = {"drawer": drawer, "flood": flood, "unwatched": drawer}
WATCH = {"drawer": "words", "flood": "events", "unwatched": "off"}
"""What the hello of each says."""


def main(path: str) -> None:
    """Writes what the caller of ``drawer`` says."""
    with wave.open(path, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(MICROPHONE_HZ)
        file.writeframes(microphone(MICROPHONE_HZ))


if __name__ == "__main__":
    main(sys.argv[1])
