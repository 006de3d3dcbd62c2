"""Runs the noise filter of a call so that its failures cost the filtering alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bargein.routes.error_containment import CONTAINED, Failures
from bargein.routes.logs import get_logger

from ._protocols import NoiseFilter

if TYPE_CHECKING:
    from bargein.bridge import Bridge

log = get_logger()


class CallerFilter:
    """The noise filter of one call's microphone; what it fails on passes unfiltered."""

    def __init__(self, noise_filter: NoiseFilter, bridge: Bridge) -> None:
        """Keep the filter.

        Args:
            noise_filter: The filter of this call.
            bridge: Whoever hears; the filter's new failures are reported there.
        """
        self._filter = noise_filter
        self._name = type(noise_filter).__name__
        self._bridge = bridge
        self._failures = Failures(call_id=bridge.call_id)

    def clean(self, pcm: bytes) -> bytes:
        """Return sound without its noise, or as it is if the filter fails.

        Args:
            pcm: Whole samples, PCM16.
        """
        try:
            with CONTAINED:
                cleaned = _checked(self._filter.clean(pcm), self._name)
        except Exception as error:  # a noisy caller is better than none
            if self._failures.is_new(self._name, error):
                call_id = self._bridge.call_id
                log.exception("noise_filter_failed", call_id=call_id, filter=self._name)
                self._bridge.report_error(error)
            return pcm
        if self._failures.stages:
            self._failures.works(self._name)
        return cleaned


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
