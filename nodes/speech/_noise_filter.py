"""Runs the noise filter of a call so that its failures cost the filtering alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bargein.bridge.audio.pcm import WholeSamples
from bargein.routes.error_containment import CONTAINED, Failures
from bargein.routes.logs import get_logger

from ._protocols import NoiseFilter

if TYPE_CHECKING:
    from bargein.bridge import Bridge, Message

log = get_logger()


class CallerMicrophone:
    """The microphone of one call in whole samples, filtered once for all that hear it.

    What the filter fails on passes unfiltered.
    """

    def __init__(self, noise_filter: NoiseFilter) -> None:
        """Keep the filter.

        Args:
            noise_filter: The filter of this call.
        """
        self._filter = noise_filter
        self._name = type(noise_filter).__name__
        self._failures: Failures | None = None
        self._samples = WholeSamples()
        self._event: object = None  # the newest one
        self._heard = b""  # of it

    def hear(self, message: Message, bridge: Bridge) -> bytes:
        """Return the sound of a message, the same for all that ask for it.

        Args:
            message: A ``UserAudio``, the newest or the one before asked for.
            bridge: Whoever hears it; the filter's new failures are reported there.
        """
        if message.event is not self._event:
            self._event = message.event
            self._heard = self._clean(self._samples.push(message.event.pcm), bridge)
        return self._heard

    def _clean(self, pcm: bytes, bridge: Bridge) -> bytes:
        failures = self._failures = self._failures or Failures(call_id=bridge.call_id)
        try:
            with CONTAINED:
                cleaned = _checked(self._filter.clean(pcm), self._name)
        except Exception as error:  # a noisy caller is better than none
            if failures.is_new(self._name, error):
                log.exception("noise_filter_failed", call_id=bridge.call_id, filter=self._name)
                bridge.report_error(error)
            return pcm
        if failures.stages:
            failures.works(self._name)
        return cleaned


def microphone_of(noise_filter: NoiseFilter | CallerMicrophone | None) -> CallerMicrophone | None:
    """Return the microphone behind a filter, or the one that others hear, too."""
    if noise_filter is None or isinstance(noise_filter, CallerMicrophone):
        return noise_filter
    return CallerMicrophone(noise_filter)


def _checked(cleaned: object, name: str) -> bytes:
    """Return what a filter gave if it is sound.

    Raises:
        TypeError: It is something else than bytes.
        ValueError: Half a sample is left, which would shift all samples that follow.
    """
    if not isinstance(cleaned, (bytes, bytearray)):
        raise TypeError(f"{name}.clean() gives bytes of PCM16, not {type(cleaned).__name__}")
    if len(cleaned) % 2:
        raise ValueError(f"{name}.clean() gave {len(cleaned)} bytes; a sample of PCM16 has two")
    return bytes(cleaned)
