"""What people say to the café of the examples, and what it makes of it."""

import importlib.util
from pathlib import Path

import pytest

from bridge.testing import open_call

from .conftest import end_of, say

pytestmark = pytest.mark.proof

CAFE = Path(__file__).parents[2] / "examples" / "cafe.py"

SENTENCES = [
    tuple(part.strip() for part in line.split("|"))
    for line in Path(__file__).with_name("cafe_sentences.txt").read_text().splitlines()
    if line and not line.startswith("#")
]


@pytest.fixture(scope="module")
def cafe():
    spec = importlib.util.spec_from_file_location("cafe", CAFE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kind_of(reply: str, order: str) -> str:
    """Return what a reply does, and whether it says the order back in full."""
    if reply.endswith("Goodbye!"):
        assert not order or f"Thank you! {order.capitalize()}, ready soon." in reply
        return "goodbye"
    if f"Of course, {order}. That comes to" in reply:
        return "said back"
    return "asked" if reply.endswith("?") else reply


def turns(text: str) -> list[str]:
    return [turn.strip() for turn in text.split(" / ") if turn.strip()]


@pytest.mark.parametrize(("before", "said", "order", "reply"), SENTENCES)
async def test_the_cafe_understands(cafe, before, said, order, reply, autojump_clock):
    """The order is the one that was meant, and the last reply says it back, asks, or ends."""
    async with open_call(cafe.answer) as caller:
        await caller.quiet()
        for turn in turns(before) + turns(said):
            last = await say(caller, turn)
        assert kind_of(last, order) == reply, last
        if reply == "goodbye":
            assert await end_of(caller) == "agent_ended"
            return
        assert not caller.call.ended.is_set()
        if reply == "asked":
            last = await say(caller, "What did I order?")
            assert last.startswith(f"You have {order or 'nothing yet'}."), last
