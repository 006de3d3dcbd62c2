"""Words of a streaming ear that come behind the end of their turn, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from bargein import App, ChatNode
from bargein.speech import Speech, TurnOver, VoiceBegan, WordsHeard
from bargein.testing import ScriptedModel, open_call

from .failing import WordVoice
from .test_streaming_ears import ScriptedEar

LATE: dict[str, list[tuple[float, Any]]] = {
    "final words": [(0.3, WordsHeard("please", final=True))],
    "another segment": [(0.3, WordsHeard("please", segment=1, final=True))],
    "a second end": [(0.2, VoiceBegan()), (0.2, TurnOver("please"))],
}


@pytest.mark.parametrize("late", LATE.values(), ids=LATE)
async def test_late_words_are_answered_and_nothing_is_heard_twice(
    autojump_clock: Any, late: list[tuple[float, Any]]
) -> None:
    """The model gets all words in order, and one answer is heard (livekit/agents 6504)."""
    ear, model = ScriptedEar(), ScriptedModel(then=[1.5, "Certainly."])

    async def answer(call: Any) -> None:
        call.converse(ChatNode(model))

    app = App(answer, speech=Speech(ear, WordVoice()))
    async with open_call(app, own_speech=True) as caller:
        ear.tell(VoiceBegan())
        await trio.sleep(0.5)
        ear.tell(WordsHeard("a latte"))
        await trio.sleep(0.5)
        ear.tell(TurnOver("a latte"))
        for wait_s, fact in late:
            await trio.sleep(wait_s)
            ear.tell(fact)
        await trio.sleep(20)
        assert caller.heard.count("Certainly.") == 1
        assert caller.call.current_state == "idle"
    assert model.requests[-1].texts("user") == ["a latte", "please"]
