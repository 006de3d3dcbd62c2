"""Cartesia's real service: a sentence through its voice, then through its ear."""

from __future__ import annotations

import os

from bargein.ears import CartesiaEar
from bargein.voices import CartesiaVoice

from .keys import assert_understood, heard_by, said_by


async def test_the_ear_understands_the_voice():
    """What the voice says the ear understands."""
    voice = CartesiaVoice(os.environ["CARTESIA_VOICE"])
    assert_understood(await heard_by(CartesiaEar(), await said_by(voice)))
