"""The café of the examples, in virtual time."""

import importlib.util
from pathlib import Path

import pytest

from bridge.events import CallEnded
from bridge.testing import open_call

CAFE = Path(__file__).parents[2] / "examples" / "cafe.py"


@pytest.fixture(scope="module")
def cafe():
    spec = importlib.util.spec_from_file_location("cafe", CAFE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def test_a_changed_order_is_the_one_confirmed(cafe, autojump_clock):
    """The caller talks over the confirmation, and the changed order is what is made."""
    async with open_call(cafe.answer) as caller:
        await caller.quiet()
        await caller.says("Hi, can I get a large latte and a blueberry muffin please.")
        await caller.until(lambda c: "one large latte" in c.heard)
        await caller.says("No wait, I want a cappuccino instead.")
        await caller.quiet()
        await caller.says("No, that's all.")
        await caller.call.ended.wait()
        assert caller.heard.endswith(
            "Thank you! One large cappuccino and one blueberry muffin, ready soon. Goodbye!"
        )
        assert caller.events(CallEnded) == [CallEnded(reason="agent_ended")]
        (record,) = caller.call.history.interruptions
        assert record.generated.startswith(record.heard)
        assert len(record.heard) < len(record.generated)


@pytest.mark.parametrize(
    ("said", "order"),
    [
        (["a small tea"], {"drink": "small tea"}),
        (["a latte", "make it large"], {"drink": "large latte"}),
        (["a large latte", "no, an espresso"], {"drink": "large espresso"}),
        (["a cookie"], {"food": "cookie"}),
        (["hello there"], {}),
    ],
)
def test_the_grammar_understands(cafe, said, order):
    """Sizes, drinks and food are found wherever they stand."""
    barista = cafe.Barista()
    for text in said:
        barista.understand(text)
    assert barista.order == order


async def test_a_turn_without_words_is_asked_again(cafe, autojump_clock):
    """A noise that was no speech gets a question, not an order."""
    async with open_call(cafe.answer) as caller:
        await caller.quiet()
        await caller.says(" ")
        await caller.quiet()
        assert "did not catch that" in caller.heard
