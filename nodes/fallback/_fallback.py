"""Makes one ear, voice or model of several."""

from __future__ import annotations

from typing import Any, overload

from bargein.nodes.llm import ChatModel
from bargein.nodes.speech import SpeechToText, StreamingSTT, StreamingTTS, TextToSpeech

from ._ears import FallbackEar
from ._models import FallbackModel
from ._recogniser import FallbackRecogniser
from ._voices import FallbackVoice


@overload
def Fallback(
    first: StreamingSTT, *others: StreamingSTT, stalls_after_s: float | None = None
) -> FallbackEar: ...
@overload
def Fallback(
    first: SpeechToText, *others: SpeechToText, stalls_after_s: float | None = None
) -> FallbackRecogniser: ...
@overload
def Fallback(
    first: TextToSpeech | StreamingTTS,
    *others: TextToSpeech | StreamingTTS,
    stalls_after_s: float | None = None,
) -> FallbackVoice: ...
@overload
def Fallback(
    first: ChatModel, *others: ChatModel, stalls_after_s: float | None = None
) -> FallbackModel: ...
def Fallback(first: Any, *others: Any, stalls_after_s: float | None = None) -> Any:
    """Return one ear, voice or model made of several, which stand in for one another.

    The first one does the work.  When it raises, gives garbage, or gives nothing for too long, the
    next one takes over: in the same answer, and in the middle of a sentence.  A provider that
    failed rests, for all calls of the process, until a probe finds that it works.

    A voice goes on behind the last word that was heard, or says the clause again if it knows no
    times of words.  An ear gets the audio since the utterance began again, and a recogniser the
    utterance.  A model answers anew if nothing of the answer was heard; else it goes on behind what
    was said, unless tools have run.

    Args:
        first: The provider to use while it works.
        *others: Those that take over, in this order.
        stalls_after_s: How long one may give nothing that is waited for, in seconds; None for the
            default of its kind: 2.2 for models, 2.0 for voices, 1.5 for ears and for recognisers.

    Raises:
        TypeError: They are not all ears, all recognisers, all voices or all models.
        ValueError: There is only one, or the time is not above 0.
    """
    engines = (first, *others)
    if not others:
        raise ValueError("Fallback() takes two providers or more")
    if stalls_after_s is not None and not stalls_after_s > 0:
        raise ValueError(f"Fallback(stalls_after_s=) is above 0, not {stalls_after_s!r}")
    for methods, make in _KINDS:
        if all(_has_one_of(engine, methods) for engine in engines):
            return make(engines, stalls_after_s)
    raise TypeError(
        "Fallback() takes ears (open_stream), recognisers (transcribe), voices (open_context or "
        f"synthesize) or models (stream), all of one kind, not {', '.join(map(repr, engines))}"
    )


def _has_one_of(engine: object, methods: tuple[str, ...]) -> bool:
    if isinstance(engine, type):
        return False
    return any(callable(getattr(engine, method, None)) for method in methods)


_KINDS: tuple[tuple[tuple[str, ...], Any], ...] = (
    (("open_stream",), FallbackEar),
    (("transcribe",), FallbackRecogniser),
    (("open_context", "synthesize"), FallbackVoice),
    (("stream",), FallbackModel),
)
