"""The check of voices: streaming ones, and those that take text clause by clause."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import trio

from bargein.nodes.speech import (
    StreamingTTS,
    TextSaid,
    TextToSpeech,
    VoiceContext,
    VoiceStyle,
)
from bargein.nodes.speech._clause_context import open_utterance

from ._check_options import CheckOptions, CompleteCheckOptions
from ._check_report import BreachError, CheckReport
from ._provider_checks import ProviderChecks
from ._provider_use import Make, ProviderUse

TEXT = ("One large latte ", "with oat milk. ", "Anything else?")

SHORT = "Hi. "

SLACK = 0.2
"""How much longer or shorter the same text may last, as a share: some engines vary each time."""

SLACK_S = 0.1
"""The same in seconds, for short texts and for the times of words."""


@dataclass(frozen=True, slots=True)
class VoiceResult:
    """What a voice said."""

    audio_s: float
    words: tuple[tuple[str, float, float], ...]
    """Each word with its start and end, in seconds from the first sample."""
    flushes: int
    """How many flushes were answered."""


def check_voice(
    make: Make[StreamingTTS] | Make[TextToSpeech],
    *,
    text: Sequence[str] = TEXT,
    **options: Unpack[CheckOptions],
) -> CheckReport:
    """Check that a voice keeps its promises, whatever its vendor does and whenever it is cancelled.

    Call it from a plain test, not from an async one: it runs trio itself, once per trial.

    Args:
        make: Returns a context manager that opens the voice; it gets the fault of the vendor, or
            None.  A voice without a vendor ignores it.
        text: The text in the pieces in which it is sent; each is flushed.
        options: What to check, and within which bounds.

    Returns:
        What was checked and what was skipped; prints as a table.

    Raises:
        ProviderCheckError: A check failed; the message has the report.
        RuntimeError: It was called inside a run of trio.
        ValueError: `only` names an unknown check.
    """
    return ProviderChecks("voice", make, _VoiceUse(text), CompleteCheckOptions(**options)).run()


class _VoiceUse(ProviderUse[StreamingTTS | TextToSpeech, VoiceResult]):
    """Says a text."""

    def __init__(self, text: Sequence[str]) -> None:
        self._text = text

    async def use(self, provider: StreamingTTS | TextToSpeech) -> VoiceResult:
        """Say the text, and check that the audio makes sense."""
        return await _say(provider, self._text)

    async def use_briefly(self, provider: StreamingTTS | TextToSpeech) -> None:
        """Say one word."""
        await _say(provider, [SHORT])

    async def use_nothing(self, provider: StreamingTTS | TextToSpeech) -> None:
        """Say no text, empty texts, and spaces."""
        for nothing in ([], [""], [" ", "\n"]):
            said = await _say(provider, nothing)
            if said.words:
                raise BreachError(f"no words for {nothing!r}", repr(said.words))

    async def leave_early(self, provider: StreamingTTS | TextToSpeech) -> None:
        """Leave an utterance after its first audio."""
        async with open_utterance(provider, VoiceStyle()) as context:
            for text in self._text:
                await context.send(text)
                await context.flush()
            await context.receive()

    async def read_nothing(self, provider: StreamingTTS | TextToSpeech, seconds: float) -> None:
        """Have a text said, and read nothing of it for a while."""
        async with open_utterance(provider, VoiceStyle()) as context:
            for text in self._text:
                await context.send(text)
                await context.flush()
            await trio.sleep(seconds)

    async def feed(self, provider: StreamingTTS | TextToSpeech, seconds: float) -> None:
        """Say a text to a vendor that reads nothing."""
        with trio.move_on_after(seconds):
            await _say(provider, self._text)

    def difference(self, expected: VoiceResult, came: VoiceResult) -> str:
        """Compare the length, the words and the flushes."""
        words = [word for word, _, _ in came.words]
        if not math.isclose(came.audio_s, expected.audio_s, rel_tol=SLACK, abs_tol=SLACK_S):
            return f"it lasts {came.audio_s:.2f} s, not {expected.audio_s:.2f}"
        if words != [word for word, _, _ in expected.words]:
            return "other words"
        if came.flushes != expected.flushes:
            return f"{came.flushes} flushes are answered, not {expected.flushes}"
        return ""


async def _say(voice: StreamingTTS | TextToSpeech, texts: Sequence[str]) -> VoiceResult:
    async with open_utterance(voice, VoiceStyle()) as context, trio.open_nursery() as nursery:
        nursery.start_soon(_send, context, texts)
        audio_s, flushes = 0.0, 0
        words: list[tuple[str, float, float]] = []
        while (piece := await context.receive()) is not None:
            if isinstance(piece, TextSaid):
                flushes += 1
                if flushes > len(texts):
                    raise BreachError(f"{len(texts)} flushes are answered", "one more")
                continue
            words += [(w.text, audio_s + w.start_s, audio_s + w.end_s) for w in piece.words]
            audio_s += len(piece.pcm) / 2 / voice.sample_rate_hz
        if await context.receive() is not None:
            raise BreachError("nothing behind the end", "more")
    _see_sense(words, audio_s)
    return VoiceResult(audio_s, tuple(words), flushes)


async def _send(context: VoiceContext, texts: Sequence[str]) -> None:
    for text in texts:
        await context.send(text)
        await context.flush()
    await context.end()


def _see_sense(words: Sequence[tuple[str, float, float]], audio_s: float) -> None:
    """Check that words are in order, and within the audio."""
    before_s = 0.0
    for word, start_s, end_s in words:
        times = f"{word!r} at {start_s:g} to {end_s:g} s of {audio_s:g}"
        if not (math.isfinite(start_s) and math.isfinite(end_s)):
            raise BreachError("finite times of words", times)
        if start_s < before_s - SLACK_S or end_s < start_s:
            raise BreachError(f"words in the order of their times, behind {before_s:g} s", times)
        if end_s > audio_s * (1 + SLACK) + SLACK_S:
            raise BreachError("words within the audio", times)
        before_s = start_s
