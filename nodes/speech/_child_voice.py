"""A voice as the engine of a worker process; it imports nothing of this framework.

The engine's own file is named in the settings.  A piece goes to the parent as u32 length of the
words' JSON, that JSON, and PCM16 mono (little-endian).
"""

from __future__ import annotations

import json
import runpy
import struct
from collections.abc import Callable, Iterable
from typing import Any, Protocol

Words = list[tuple[str, float, float]]


class Engine(Protocol):
    """What ``load(settings)`` of a voice's file returns."""

    sample_rate_hz: int

    def synthesize(
        self, text: str, is_cancelled: Callable[[], bool]
    ) -> Iterable[tuple[bytes, Words]]:
        """Yield pieces of PCM16 and their words; stop early once `is_cancelled()` is true.

        The same text is cut into the same pieces each time: where a process is lost, another one
        says the rest.
        """
        ...


class Voice:
    """Answers a text with the pieces of its speech."""

    def __init__(self, engine: Engine) -> None:
        """Speak with an engine that is loaded."""
        self._engine = engine
        self.about = {"sample_rate_hz": engine.sample_rate_hz}

    def run(
        self, payload: bytes, give: Callable[[bytes], None], is_cancelled: Callable[[], bool]
    ) -> None:
        """Say one text."""
        for pcm, words in self._engine.synthesize(payload.decode(), is_cancelled):
            if is_cancelled():
                return
            meta = json.dumps(words).encode()
            give(struct.pack("<I", len(meta)) + meta + pcm)


def load(settings: dict[str, Any]) -> Voice:
    """Load the file ``engine``, and what it makes of ``settings``."""
    return Voice(runpy.run_path(settings["engine"])["load"](settings["settings"]))
