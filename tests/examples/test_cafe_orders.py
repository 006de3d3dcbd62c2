"""Sentences of guests, and the orders that the café makes of them."""

import importlib.util
import random
import re
from pathlib import Path

import pytest

from bargein.testing import open_call

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


@pytest.mark.parametrize("seed", range(20))
def test_any_words_leave_an_order_that_can_be_made(cafe, seed):
    """Whatever is said there is a reply, at most twenty of a kind, and no size of a cake."""
    dice = random.Random(seed)
    words = re.findall(r"[a-z]+|,", " ".join(part for row in SENTENCES for part in row[:2]).lower())
    for _ in range(50):
        taker = cafe.OrderTaker()
        for _ in range(3):
            heard = taker.hear(" ".join(dice.choices(words, k=dice.randint(1, 9))))
            assert heard.changed or heard.finished or heard.question
            lines = taker.order.lines
            assert all(0 < line.count <= 20 for line in lines)
            assert not any(line.size for line in lines if "cookie" in line.item)
            assert len({line.name for line in lines}) == len(lines)
