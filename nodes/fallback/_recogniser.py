"""A fallback of recognisers: when one fails, the next one gets the same utterance."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import trio

from bargein.nodes.speech import SpeechEngineError, SpeechToText, Transcript
from bargein.routes.logs import get_logger

from ._provider_recovery import Provider, ProviderGroup, in_order, providers_of

log = get_logger()

STALLS_AFTER_S = 1.5
"""How long a recogniser may take, in seconds: as long as a streaming ear may report nothing."""


class FallbackRecogniser(ProviderGroup[SpeechToText]):
    """Several recognisers of whole utterances used as one; made by ``Fallback()``."""

    def __init__(
        self, recognisers: Sequence[SpeechToText], stalls_after_s: float | None = None
    ) -> None:
        """Keep the recognisers, the preferred one first.

        Args:
            recognisers: The recognisers.
            stalls_after_s: How long a recogniser may take; ``None`` for `STALLS_AFTER_S`.
        """
        stalls_after_s = STALLS_AFTER_S if stalls_after_s is None else stalls_after_s
        super().__init__(providers_of("ear", recognisers), stalls_after_s)

    async def transcribe(self, pcm: bytes) -> Transcript:
        """Transcribe one utterance; see `SpeechToText.transcribe`.

        Args:
            pcm: The utterance, PCM16 little-endian mono, 16 kHz.

        Raises:
            Exception: What the last recogniser raised.
        """
        waiting = in_order(self._providers)
        while True:
            provider = waiting.pop(0)
            try:
                return await self._transcribe(provider, pcm)
            except Exception as error:
                provider.fail(error, partial(self._transcribe, provider, pcm))
                if not waiting:
                    raise
                log.warning("ear_switched", to=waiting[0].circuit.name)

    async def _transcribe(self, provider: Provider[SpeechToText], pcm: bytes) -> Transcript:
        try:
            with trio.fail_after(self._stalls_after_s):
                heard: object = await provider.engine.transcribe(pcm)
        except trio.TooSlowError:
            problem = f"the recogniser gave nothing for {self._stalls_after_s:g} s"
            raise SpeechEngineError(problem) from None
        if not isinstance(heard, Transcript) or not isinstance(heard.text, str):
            raise TypeError(f"the recogniser gave {type(heard).__name__}, which is no transcript")
        return heard
