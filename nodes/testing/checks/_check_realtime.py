"""The check of speech-to-speech models."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import ClassVar, Unpack

import trio

from bargein.nodes.fakes import Fault, FaultStage
from bargein.nodes.llm import AnswerPiece, SpeechDelta, TextDelta, ToolCallRequest, Usage
from bargein.nodes.realtime import RealtimeModel

from ._check_ear import BYTES_PER_S, FEED_BYTES, SOUND
from ._check_options import CheckOptions, CompleteCheckOptions
from ._check_report import BreachError, CheckReport
from ._check_voice import SLACK, SLACK_S
from ._provider_checks import ProviderChecks
from ._provider_use import Make, ProviderUse
from ._realtime_caller import RealtimeCaller, open_caller

LINGER_S = 1.0
"""How long nothing may follow an answer, in seconds."""


@dataclass(frozen=True, slots=True)
class ConversationResult:
    """What a model heard, and what it answered."""

    heard: str
    text: str
    audio_s: float
    calls: tuple[str, ...]
    ended_by: str | None


def check_speech_to_speech(
    make: Make[RealtimeModel],
    *,
    pcm: bytes = SOUND,
    hears: bool = True,
    **options: Unpack[CheckOptions],
) -> CheckReport:
    """Check that a speech-to-speech model keeps its promises, whatever its vendor does and whenever
    it is cancelled.

    Call it from a plain test, not from an async one: it runs trio itself, once per trial.  A use is
    a turn of the caller and the model's answer; the uses of a run share a line, like the turns of a
    call.

    Args:
        make: Returns a context manager that opens the model; it gets the fault of the vendor, or
            None.  The model has no tools, and has to answer the same each time.
        pcm: One turn of a caller, PCM16 little-endian mono, 16 kHz.
        hears: Whether the model's own turn detection is used; see `RealtimeNode`.
        options: What to check, and within which bounds.

    Returns:
        What was checked and what was skipped; prints as a table.

    Raises:
        ProviderCheckError: A check failed; the message has the report.
        RuntimeError: It was called inside a run of trio.
        ValueError: `only` names an unknown check.
    """
    terms = CompleteCheckOptions(**options)
    use = _ConversationUse(pcm, LINGER_S if terms.virtual else 0.2, hears=hears)

    @asynccontextmanager
    async def call(fault: Fault | None) -> AsyncIterator[RealtimeCaller]:
        async with make(fault) as model, open_caller(model, hears=hears) as caller:
            yield caller

    return ProviderChecks("speech to speech model", call, use, terms).run()


class _ConversationUse(ProviderUse[RealtimeCaller, ConversationResult]):
    """Says something, and reads the answer."""

    may_be_silent: ClassVar[Collection[FaultStage]] = frozenset[FaultStage](("voice",))
    # As while nobody speaks: a detector and a budget of the app find it

    def __init__(self, pcm: bytes, linger_s: float, *, hears: bool) -> None:
        self._pcm = pcm
        self._linger_s = linger_s
        if hears:
            self.stages = ("connect", "voice", "words", "first", "middle", "last")

    async def use(self, provider: RealtimeCaller) -> ConversationResult:
        """Converse, and check that the answer makes sense."""
        came = await _converse(provider, self._pcm)
        await provider.expect_nothing(self._linger_s)
        return came

    async def use_briefly(self, provider: RealtimeCaller) -> None:
        """Say a little, and read the answer."""
        await _converse(provider, self._pcm[: BYTES_PER_S // 5])

    async def use_nothing(self, provider: RealtimeCaller) -> None:
        """Say nothing, and create an answer that nobody reads."""
        await provider.expect_nothing(self._linger_s)
        answer = provider.ask()
        del answer

    async def use_empty(self, provider: RealtimeCaller) -> None:
        """Say something without words, and read an answer without words."""
        came = await _converse(provider, self._pcm)
        if came.heard or came.text or came.audio_s:
            raise BreachError("no words, and no sound", repr(came))

    async def leave_early(self, provider: RealtimeCaller) -> None:
        """Interrupt an answer after half of its first audio was heard."""
        await provider.say(self._pcm)
        async with aclosing(provider.ask()) as answer:
            async for piece in answer:
                if isinstance(piece, SpeechDelta):
                    break
            else:
                raise BreachError("an answer with sound", "none")
        provider.hear_half(piece)

    async def read_nothing(self, provider: RealtimeCaller, seconds: float) -> None:
        """Read one piece of an answer, and no more for a while."""
        await provider.say(self._pcm)
        async with aclosing(provider.ask()) as answer:
            await anext(answer)
            await trio.sleep(seconds)
            async for _ in answer:
                pass

    async def feed(self, provider: RealtimeCaller, seconds: float) -> None:
        """Send half an hour of audio at once."""
        with trio.move_on_after(seconds):
            await provider.pour(self._pcm[:BYTES_PER_S], FEED_BYTES // BYTES_PER_S)

    def difference(self, expected: ConversationResult, came: ConversationResult) -> str:
        """Compare the transcript, the answer and its length."""
        if came.heard != expected.heard:
            return "it heard other words"
        if not math.isclose(came.audio_s, expected.audio_s, rel_tol=SLACK, abs_tol=SLACK_S):
            return f"it lasts {came.audio_s:.2f} s, not {expected.audio_s:.2f}"
        if (came.text, came.calls) != (expected.text, expected.calls):
            return "another answer"
        return "" if came.ended_by == expected.ended_by else "it ended otherwise"


async def _converse(caller: RealtimeCaller, pcm: bytes) -> ConversationResult:
    heard = await caller.say(pcm)
    async with aclosing(caller.ask()) as answer:
        return _judged(heard, [piece async for piece in answer])


def _judged(heard: str, answer: Sequence[AnswerPiece]) -> ConversationResult:
    """Return the answer if it makes sense."""
    usage = answer[-1] if answer else None
    if not isinstance(usage, Usage):
        raise BreachError("an answer that ends with its Usage", repr(answer[-1:]))
    text, audio_s, calls = "", 0.0, []
    for piece in answer[:-1]:
        match piece:
            case Usage():
                raise BreachError("one Usage", repr(answer))
            case TextDelta():
                if not piece.text:
                    raise BreachError("texts that are not empty", repr(piece))
                text += piece.text
            case SpeechDelta():
                if not text or len(piece.pcm) % 2:
                    raise BreachError(
                        "whole samples, behind the text that they say", repr(piece)[:99]
                    )
                audio_s += len(piece.pcm) / 2 / piece.sample_rate_hz
            case ToolCallRequest():
                calls.append(piece.raw)
    return ConversationResult(heard, text, audio_s, tuple(calls), usage.finish_reason)
