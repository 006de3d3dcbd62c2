"""A voice that may be flushed seldom, alone and among others: a long answer, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.events import StageStalled, UserStoppedSpeaking
from bargein.fakes import FakeDeepgramAura
from bargein.fallback import Fallback
from bargein.voices import DeepgramVoice
from tests.nodes.vendors.test_voices import CHAR_S, speaking

SENTENCES = [f"Sentence number {number} of a long answer tells nothing. " for number in range(90)]
AUDIO_S = sum(len(sentence) * CHAR_S for sentence in SENTENCES)


@pytest.mark.proof
@pytest.mark.parametrize("is_among_others", [False, True])
async def test_a_long_answer_has_no_gap(autojump_clock, is_among_others):
    """Aura takes 20 flushes a minute, and a clause lasts two seconds: nobody hears it wait."""
    async with FakeDeepgramAura().open() as vendor, FakeDeepgramAura().open() as other:
        voice: Any = aura(vendor)
        if is_among_others:
            voice = Fallback(voice, aura(other))
        async with speaking(voice, SENTENCES) as caller:
            caller.publish(UserStoppedSpeaking())
            await caller.at(AUDIO_S + 4.0)
            assert caller.heard.split() == "".join(SENTENCES).split()
            await caller.quiet()
            assert caller.events(StageStalled) == []
    assert not [asked for asked in other.received if asked["type"] == "Speak"]


def aura(vendor: FakeDeepgramAura) -> DeepgramVoice:
    """Return a voice that asks a fake."""
    return DeepgramVoice(
        "aura-2-thalia-en", api_key="s3cret", base_url="ws://fake", dial=vendor.dial
    )
