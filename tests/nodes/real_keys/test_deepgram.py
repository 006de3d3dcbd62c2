"""Deepgram's real service: a sentence through each of its voices, then through each of its ears."""

from __future__ import annotations

import pytest

from bargein.ears import DeepgramFlux, DeepgramNova
from bargein.voices import DeepgramVoice

from .keys import assert_understood, heard_by, said_by


@pytest.mark.parametrize("ear", [DeepgramFlux, DeepgramNova])
@pytest.mark.parametrize("voice", ["flux-haley-en", "aura-2-thalia-en"])
async def test_the_ear_understands_the_voice(voice, ear):
    """What the voice says the ear understands."""
    assert_understood(await heard_by(ear(), await said_by(DeepgramVoice(voice))))
