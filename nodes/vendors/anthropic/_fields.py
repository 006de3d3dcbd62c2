"""Anthropic's own blocks: thoughts and the tools of its servers, which go back with their call.

By the vendor's page "Extended thinking": a request of a tool loop is refused unless the message
with the call begins with its ``thinking`` and ``redacted_thinking`` blocks, complete, unmodified
and in their order.  Every block but text and calls is kept, with the place of the text among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bargein.bridge.history import extra_of
from bargein.nodes.llm.provider_fields import OwnFields
from bargein.nodes.llm.tool_call_pieces import arguments_of
from bargein.nodes.services import object_of, objects_of, text_of

Block = Mapping[str, Any]

_TEXT: Block = {"type": "text"}
"""Stands where the text was: the history knows how much of it was heard."""
_THOUGHTS = ("thinking", "redacted_thinking")


class AnthropicFields:
    """The own blocks of one answer."""

    def __init__(self, model: str) -> None:
        """Start without a block.

        Args:
            model: The model's name, for the log.
        """
        self._own = OwnFields(model)
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, str] = {}
        self._since_call: list[int] = []

    def start(self, number: int, block: Block) -> None:
        """Begin a block, whole or empty; its number is its index in the message."""
        if self._own.fits(block):
            self._blocks[number] = dict(_TEXT if block.get("type") == "text" else block)
            self._since_call.append(number)

    def add(self, number: int, delta: Block) -> None:
        """Add a piece of a block; one of a call, or of text, adds nothing."""
        block = self._blocks.get(number, _TEXT)
        if block.get("type") == "text" or not self._own.fits(delta):
            return
        for name, value in delta.items():
            if name == "partial_json":
                self._inputs[number] = self._inputs.get(number, "") + text_of(value)
            elif name != "type" and isinstance(value, str):
                self._blocks[number][name] = text_of(block.get(name)) + value

    def call(self) -> list[int]:
        """Begin a call; return the numbers of the blocks before it, since the last call."""
        numbers, self._since_call = self._since_call, []
        return numbers

    def fields(self, numbers: Sequence[int], call: Block) -> dict[str, Any]:
        """Return what is kept with a call; empty if the provider sent nothing of its own.

        Args:
            numbers: The blocks before the call.
            call: Fields of the call itself that no other API has.
        """
        for number in set(numbers) & set(self._inputs):
            self._blocks[number]["input"] = arguments_of(self._inputs[number]) or {}
        blocks = [self._blocks[number] for number in numbers]
        found: dict[str, Any] = {}
        if any(block.get("type") != "text" for block in blocks):
            found["blocks"] = blocks
        if call:
            found["call"] = dict(call)
        return self._own.whole(found)


def blocks_of(text: Sequence[Block], calls: Sequence[Block], provider: str) -> list[dict[str, Any]]:
    """Return the blocks of an assistant's message: its text, its calls, and the own blocks.

    Args:
        text: The blocks of its text.
        calls: Its ``tool_calls``.
        provider: Whose own fields go back.
    """
    blocks: list[dict[str, Any]] = []
    waiting = [dict(one) for one in text]
    for call in calls:
        extra = extra_of(call, provider)
        for own in objects_of(extra.get("blocks")):
            blocks += waiting if own.get("type") == "text" else [dict(own)]
            waiting = [] if own.get("type") == "text" else waiting
        function = call["function"]
        use = {"type": "tool_use", "id": call["id"], "name": function["name"]}
        use["input"] = arguments_of(function["arguments"]) or {}
        blocks += [*waiting, {**object_of(extra.get("call")), **use}]
        waiting = []
    return [*blocks, *waiting]


def may_think(turns: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a request may ask for thoughts, by the messages it ends with.

    A loop of calls and results is one turn of the assistant, which has to begin with thoughts: it
    does not if another provider began it.
    """
    first = len(turns)
    while first > 1 and any(
        block["type"] == "tool_result" for block in turns[first - 1]["content"]
    ):
        first -= 2
    return first == len(turns) or turns[first]["content"][0]["type"] in _THOUGHTS
