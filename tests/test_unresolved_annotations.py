"""User code may annotate with names that it imports only for type checkers, on every Python.

From Python 3.14 on, annotations need no quotes for that: they are evaluated when asked for.
"""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from bargein import App, Call, RouteDefinitionError
from bargein.testing import open_call

SOURCE = """
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shop import Call, Message, Money

@dataclass(frozen=True)
class Paid:
    amount: [Money]

def confirm(message: [Message]) -> None:
    amounts.append(message.event.amount)

def two(message: [Message], more: [Money], amount: [Money]) -> None: ...

async def answer(call: [Call]) -> None: ...

def admit(request: [Call]) -> bool:
    return True
"""


@pytest.fixture
def shop(monkeypatch):
    """A module of a user's, without quotes where Python needs none."""
    quote = "" if sys.version_info >= (3, 14) else '"'
    module = ModuleType("shop")
    monkeypatch.setitem(sys.modules, "shop", module)  # where dataclasses look the names up
    vars(module)["amounts"] = []
    exec(SOURCE.replace("[", quote).replace("]", quote), vars(module))
    return module


async def test_a_chain_takes_functions_and_events_with_such_names(shop, autojump_clock):
    """Filters know the fields of the event, the stage is called, and a wrong one is named."""

    async def answer(call: Call) -> None:
        bridge = call.bridge(name="till")
        bridge.on(shop.Paid, amount=3).map(shop.confirm)
        with pytest.raises(RouteDefinitionError, match="two"):
            bridge.on(shop.Paid).map(shop.two)

    async with open_call(answer) as caller:
        for amount in (2, 3):
            caller.publish(shop.Paid(amount))
        await caller.quiet()
    assert shop.amounts == [3]


def test_an_app_takes_an_answer_with_such_names(shop):
    """What answers calls, and what admits them, are only asked how many arguments they take."""
    App(shop.answer, admit=shop.admit)
