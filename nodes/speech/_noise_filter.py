"""Runs the noise filter of a call so that its failures cost the filtering alone."""

from __future__ import annotations

from collections.abc import Callable

from bargein.routes.error_containment import CONTAINED, Failures
from bargein.routes.logs import get_logger

from ._protocols import NoiseFilter

log = get_logger()


class FilteredMicrophone:
    """The microphone of one call behind its filter; what the filter fails on passes unfiltered."""

    def __init__(
        self, noise_filter: NoiseFilter, call_id: str, report: Callable[[Exception], None]
    ) -> None:
        """Keep the filter.

        Args:
            noise_filter: The filter of this call.
            call_id: Names the call in log lines.
            report: Is called with every failure that is new.
        """
        self._filter = noise_filter
        self._name = type(noise_filter).__name__
        self._call_id = call_id
        self._report = report
        self._failures = Failures(call_id=call_id)

    def clean(self, pcm: bytes) -> bytes:
        """Return what the filter leaves of a sound, or the sound itself if the filter fails.

        Args:
            pcm: PCM16 little-endian mono, whole samples.
        """
        try:
            with CONTAINED:
                cleaned = _checked(self._filter.clean(pcm), self._name)
        except Exception as error:  # a noisy caller is better than none
            if self._failures.is_new(self._name, error):
                log.exception("noise_filter_failed", call_id=self._call_id, filter=self._name)
                self._report(error)
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
