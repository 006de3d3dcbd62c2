"""AssemblyAI's real service: a sentence of a voice of ours through its ear."""

from __future__ import annotations

from bargein.ears import AssemblyAIEar

from .keys import assert_understood, heard_by, said_by_espeak


async def test_the_ear_understands_a_voice():
    """What espeak-ng says the ear understands."""
    assert_understood(await heard_by(AssemblyAIEar(), await said_by_espeak()))
