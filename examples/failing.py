"""A call in which a part fails, and what the caller hears.

With `python examples/failing.py voice@4s`, a simulated caller asks for a story, the voice stalls
four seconds after the caller's turn, and a second voice continues after the last word.  `model@0s`
stalls the model, and `ear@0s` the recogniser, which has no second one.  With `--alone`, the others
have no second provider either: the caller hears that it takes a moment, and at last an apology.
The call is recorded in demo-out/.
"""

from bargein.cli import exit_code  # first: Ctrl+C is one line while the rest is loaded, too

# isort: split
import argparse
import math
import re
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog
import trio

from bargein import App, Call, ChatNode
from bargein.events import StageStalled, UserStoppedSpeaking
from bargein.fallback import Fallback
from bargein.llm import AnswerPiece, TextDelta
from bargein.speech import EspeakVoice, LocalSpeech, SpeechPiece, Transcript, WhisperTiny, resample

STORY = (
    "Once upon a time, there was a lighthouse keeper who counted every ship that passed. "
    "One night she counted one too many, and the last of them had no lights at all. "
    "She rowed out to it, and found nobody on board but a small gray cat."
)
PACE = 1.5  # how much faster than real time the voice is, like a voice over a network


class Fault:
    """Makes a part stall for ever, from a moment of the call on."""

    at_s = math.inf

    def begin(self, after_s: float) -> None:
        """Start the fault so many seconds from now."""
        self.at_s = trio.current_time() + after_s

    async def meet(self) -> None:
        """Return at once before that moment; block for ever after it."""
        await trio.lowlevel.checkpoint()
        if trio.current_time() >= self.at_s:
            await trio.sleep_forever()


class StallingVoice:
    """A voice that says word after word, until it stalls."""

    def __init__(self, voice: EspeakVoice, fault: Fault) -> None:
        self._voice, self._fault = voice, fault
        self.open = voice.open

    @property
    def sample_rate_hz(self) -> int:
        return self._voice.sample_rate_hz

    async def synthesize(self, text: str) -> AsyncGenerator[SpeechPiece, None]:
        rate_hz = self.sample_rate_hz
        whole = [piece async for piece in self._voice.synthesize(text)]
        for piece in whole:
            begins_s = 0.0
            for index, word in enumerate(piece.words):
                is_last = index == len(piece.words) - 1
                ends_s = len(piece.pcm) / 2 / rate_hz if is_last else word.end_s
                await self._fault.meet()
                at, end = 2 * round(begins_s * rate_hz), 2 * round(ends_s * rate_hz)
                times = replace(word, start_s=word.start_s - begins_s, end_s=word.end_s - begins_s)
                yield SpeechPiece(piece.pcm[at:end], (times,))
                await trio.sleep((ends_s - begins_s) / PACE)
                begins_s = ends_s


class StoryModel:
    """Tells the story word by word, until it stalls."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault

    async def stream(
        self, messages: Sequence[Mapping[str, Any]], *, tools: Sequence[Mapping[str, Any]] = ()
    ) -> AsyncGenerator[AnswerPiece, None]:
        for word in re.findall(r"\S+\s*", STORY):
            await self._fault.meet()
            await trio.sleep(0.05)
            yield TextDelta(word)


class StallingEar(WhisperTiny):
    """A recogniser that stalls."""

    fault = Fault()

    async def transcribe(self, pcm: bytes) -> Transcript:
        await self.fault.meet()
        return await super().transcribe(pcm)


def app_failing(part: str, after_s: float, *, alone: bool) -> App:
    """Return an app in which a part stalls, so many seconds after the start of an answer."""
    faults = {"voice": Fault(), "model": Fault(), "ear": Fault()}
    ear = StallingEar()
    ear.fault = faults["ear"]
    first_voice = StallingVoice(EspeakVoice("en-us+f3", words_per_minute=160), faults["voice"])
    second_voice = EspeakVoice("en-us+m3", words_per_minute=160)
    first_model = StoryModel(faults["model"])

    async def answer(call: Call) -> None:
        model = first_model if alone else Fallback(first_model, StoryModel(Fault()))
        call.converse(ChatNode(model))
        watch = call.bridge(name="watch", is_agent=False)
        watch.on(StageStalled).map(lambda message: print(f"   {message.event!r}"))
        watch.on(UserStoppedSpeaking).map(lambda _: faults[part].begin(after_s))
        if part == "ear":  # the ear has to fail before there is an answer
            faults[part].begin(after_s)
        call.say("Hi! Ask me for a story.")

    voice = first_voice if alone else Fallback(first_voice, second_voice)
    return App(answer, speech=LocalSpeech(voice=voice, ear=ear), name="the story")


async def rehearse_failure(part: str, after_s: float, out: Path, *, alone: bool) -> bool:
    """Let a simulated caller ask for the story; return whether the call went as it should."""
    from bargein.rehearsal import ScriptLine, agent_falls_silent, rehearse

    caller = EspeakVoice("en-us+f4", words_per_minute=150, word_gap=1)

    async def speak(text: str) -> bytes:
        pcm = b"".join([piece.pcm async for piece in caller.synthesize(text)])
        return resample(pcm, caller.sample_rate_hz, 16_000)

    app = app_failing(part, after_s, alone=alone)
    script = (ScriptLine("Please tell me a story.", agent_falls_silent()),)
    async with caller.open():
        result = await rehearse(app, script, voice=speak, out=out, answer_s=40.0)
    print("\nWhat the caller has heard:")
    for entry in result.history:
        if entry["role"] == "agent" and entry["heard"]:
            print(f"   {entry['heard'].strip()}")
    return result.ok


def fault_named(text: str) -> tuple[str, float]:
    """Parse "voice@4s" into the part that fails and the time."""
    match = re.fullmatch(r"(voice|model|ear)@(\d+(?:\.\d+)?)s?", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not like voice@4s, model@4s or ear@4s")
    return match[1], float(match[2])


def command(argv: Sequence[str] | None = None) -> int:
    """Run the rehearsal from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("fault", type=fault_named, help="what stalls, and when: voice@4s")
    parser.add_argument("--alone", action="store_true", help="without a second provider")
    parser.add_argument("--out", type=Path, default=Path("demo-out"), help="where files go")
    options = parser.parse_args(argv)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))
    part, after_s = options.fault

    async def run() -> bool:
        return await rehearse_failure(part, after_s, options.out, alone=options.alone)

    return 0 if trio.run(run) else 1


app = app_failing("voice", math.inf, alone=False)

if __name__ == "__main__":
    sys.exit(exit_code(command))
