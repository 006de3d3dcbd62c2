"""The function that combines several ears, voices or models into one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from bargein.bridge import ProviderKind
from bargein.bridge.validation.numbers import check_seconds
from bargein.nodes.llm import ChatModel
from bargein.nodes.realtime import RealtimeModel
from bargein.nodes.speech import Ear, Recogniser, StreamingTTS, TextToSpeech

from . import _ears, _models, _voices
from ._ears import FallbackEar, FallbackRecogniser
from ._models import FallbackModel
from ._provider_recovery import ProviderGroup, providers_of
from ._realtime import FallbackRealtime
from ._voices import FallbackVoice


@overload
def Fallback(first: Ear, *others: Ear, stalls_after_s: float | None = None) -> FallbackEar: ...
@overload
def Fallback(
    first: Recogniser, *others: Recogniser, stalls_after_s: float | None = None
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
@overload
def Fallback(
    first: RealtimeModel, *others: ChatModel, stalls_after_s: float | None = None
) -> FallbackRealtime: ...
def Fallback(first: Any, *others: Any, stalls_after_s: float | None = None) -> Any:
    """Combine several ears, recognisers, voices or models into one that survives failures.

    The first one does the work. When it raises, returns garbage, or returns nothing for too long,
    the next one takes over, even in the middle of an answer or a sentence. A provider that failed
    is not used in any call of the process until a probe finds that it works.

    The next voice continues after the last word that was heard, or repeats the clause if there are
    no word times. The next ear gets the audio since the utterance began, the next recogniser the
    whole utterance. The next model answers from the start if nothing of the answer was heard;
    otherwise it continues after what was said, unless tools have run.

    A speech-to-speech model comes first, and language models stand in for it: the ears and the
    voice of the speech stack hear and speak then. See `RealtimeNode`.

    Args:
        first: The provider to use while it works.
        *others: The providers that take over, in this order.
        stalls_after_s: How long a provider may return nothing before the next one takes over, in
            seconds; ``None`` for the default of its kind: 2.2 for models, 2.0 for voices, 1.5 for
            ears and recognisers.

    Raises:
        TypeError: The providers are not all ears, all recognisers, all voices or all models, with
            a speech-to-speech model as the first one or without any.
        ValueError: There is only one provider, or `stalls_after_s` is not above 0.
    """
    engines = (first, *others)
    if not others:
        raise ValueError("Fallback() takes two providers or more")
    check_seconds("Fallback(stalls_after_s=)", stalls_after_s, optional=True, above=0)
    if any(_has_one_of(engine, ("new_codec",)) for engine in engines):
        if _has_one_of(first, ("new_codec",)) and all(_has_one_of(o, ("stream",)) for o in others):
            return _combined(FallbackRealtime, "model", engines, stalls_after_s)
        raise TypeError(
            "Fallback(): a speech-to-speech model comes first, and language models (stream) stand "
            f"in for it, not {', '.join(map(repr, engines))}"
        )
    for methods, kind, made in _KINDS:
        if all(_has_one_of(engine, methods) for engine in engines):
            return _combined(made, kind, engines, stalls_after_s)
    raise TypeError(
        "Fallback() takes ears (open_stream), recognisers (transcribe), voices (open_context or "
        f"synthesize) or models (stream), all of one kind, not {', '.join(map(repr, engines))}"
    )


def _has_one_of(engine: object, methods: tuple[str, ...]) -> bool:
    if isinstance(engine, type):
        return False
    return any(callable(getattr(engine, method, None)) for method in methods)


def _combined(
    made: type[ProviderGroup[Any]],
    kind: ProviderKind,
    engines: Sequence[Any],
    stalls_after_s: float | None,
) -> ProviderGroup[Any]:
    default_s = _STALLS_AFTER_S[kind]
    return made(providers_of(kind, engines), stalls_after_s or default_s)


_STALLS_AFTER_S: dict[ProviderKind, float] = {
    "ear": _ears.STALLS_AFTER_S,
    "voice": _voices.STALLS_AFTER_S,
    "model": _models.STALLS_AFTER_S,
}
_KINDS: tuple[tuple[tuple[str, ...], ProviderKind, type[ProviderGroup[Any]]], ...] = (
    (("open_stream",), "ear", FallbackEar),
    (("transcribe",), "ear", FallbackRecogniser),
    (("open_context", "synthesize"), "voice", FallbackVoice),
    (("stream",), "model", FallbackModel),
)
