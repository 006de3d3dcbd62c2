"""ElevenLabs' real service: a sentence through its voice, then through its ear."""

from __future__ import annotations

import os

from bargein.ears import ElevenLabsEar
from bargein.voices import ElevenLabsVoice

from .keys import assert_understood, heard_by, said_by


async def test_the_ear_understands_the_voice():
    """What the voice says the ear understands."""
    voice = ElevenLabsVoice(os.environ["ELEVENLABS_VOICE"])
    assert_understood(await heard_by(ElevenLabsEar(), await said_by(voice)))
