"""A silent voice, for calls in virtual time.

Text becomes silent audio as long as a person would take to say it, with the exact position of each
word, so that everything downstream works as in a real call.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from ._simulated_tts import SimulatedTTS, declare_voice

if TYPE_CHECKING:
    from ..call._call import Call


class SimulatedVoice:
    """A silent voice that speaks at a constant rate, without delay."""

    def __init__(self, chars_per_s: float) -> None:
        """Configure the voice.

        Args:
            chars_per_s: How many characters it says in a second, including spaces; above 0.
        """
        self.ms_per_char = 1000 / chars_per_s

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Do nothing: there is nothing to load."""
        yield

    def attach(self, call: Call) -> None:
        """Speak for the agents of a call."""
        bridge = call.bridge(name="voice", is_agent=False)
        declare_voice(bridge, SimulatedTTS(bridge, self.ms_per_char))
