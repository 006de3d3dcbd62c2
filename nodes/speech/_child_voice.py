"""A voice as the engine of a worker process; it imports nothing from this framework.

The settings name the engine's own file; `WorkerVoice` says what is in it. A piece is sent to the
parent as the u32 length of the words' JSON, that JSON, and PCM16 mono (little-endian).
"""

from __future__ import annotations

import json
import runpy
import struct
from collections.abc import Callable
from typing import Any


class VoiceJobs:
    """Runs jobs that synthesise a text piece by piece."""

    def __init__(self, engine: Any) -> None:
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


def load(settings: dict[str, Any]) -> VoiceJobs:
    """Run the file ``engine`` and load its engine with ``settings``."""
    return VoiceJobs(runpy.run_path(settings["engine"])["load"](settings["settings"]))
