"""Characters that a speech-to-speech vendor cuts in two, in virtual time."""

from __future__ import annotations

from typing import Any

from bargein.fakes import FakeOpenAIRealtime

from .calling import calling

REPLY = "Mr. 𠮷田 is here."


class Halving(FakeOpenAIRealtime):
    """Sends the two halves of a character in two messages."""

    async def send(self, line: Any, kind: str, *at: Any, **fields: Any) -> None:
        first, second = fields.get("delta", ""), ""
        if kind.endswith("transcript.delta") and "𠮷" in first:
            before, behind = first.split("𠮷")
            first, second = before + "\ud842", "\udfb7" + behind
        await super().send(line, kind, *at, **(fields | {"delta": first} if first else fields))
        if second:
            await super().send(line, kind, *at, **fields | {"delta": second})


async def test_halves_of_characters_are_joined(autojump_clock: Any) -> None:
    """What the model says stands whole in what the caller heard and in the history."""
    vendor = Halving(REPLY)
    async with vendor.open(), calling(vendor) as caller:
        await vendor.hear("Hello?")
        await caller.quiet()
        assert caller.heard.strip() == REPLY
        assert caller.call.history.entries[-1].heard.strip() == REPLY
