"""A record of a request to a scripted model, and of its outcome."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

import trio


@dataclass(frozen=True, slots=True)
class CalledTool:
    """A tool that was called earlier in the chat, with its result."""

    id: str
    name: str
    arguments: dict[str, Any]
    result: str
    """The text for the model, which may be "its result will come later" or similar."""


@dataclass(eq=False, slots=True)
class ModelRequest:
    """One request to a model."""

    messages: list[dict[str, Any]]
    """The chat in the format of OpenAI's chat completions; a copy."""
    tools: list[dict[str, Any]]
    """The schemas of the offered tools; a copy."""
    at_s: float = field(default_factory=trio.current_time)
    """When the model was asked, in seconds of trio's clock."""
    outcome: Literal["open", "done", "cut", "failed"] = "open"
    """``open`` while the answer is being read; ``cut`` if the reader left before its end."""
    ended_at_s: float | None = None
    """When the answer ended, in seconds of trio's clock; ``None`` while it is open."""

    def end(self, outcome: Literal["done", "cut", "failed"]) -> None:
        """Record that its answer has ended now; the first outcome stays."""
        self.outcome = outcome if self.outcome == "open" else self.outcome
        self.ended_at_s = trio.current_time()

    def texts(self, role: str) -> list[str]:
        """Return the texts of the messages of a role, in order.

        Args:
            role: ``"system"``, ``"user"``, ``"assistant"`` or ``"tool"``.
        """
        said = (_text_of(m.get("content")) for m in self.messages if m["role"] == role)
        return [text for text in said if text]

    @property
    def last_text(self) -> str:
        """The text of the last message: the user's words, or a tool's result."""
        return _text_of(self.messages[-1].get("content"))

    @property
    def called(self) -> list[CalledTool]:
        """The tools called so far, each with its result, in order."""
        results = {
            m["tool_call_id"]: _text_of(m["content"]) for m in self.messages if m["role"] == "tool"
        }
        return [
            CalledTool(
                call["id"],
                call["function"]["name"],
                json.loads(call["function"]["arguments"]),
                results[call["id"]],
            )
            for message in self.messages
            for call in message.get("tool_calls") or ()
        ]

    @property
    def tool_names(self) -> list[str]:
        """The names of the offered tools."""
        return [tool["function"]["name"] for tool in self.tools]


def _text_of(content: Any) -> str:
    """Return the text of a message, whose content is a text or a list of parts."""
    if isinstance(content, list | tuple):
        return "".join(part["text"] for part in content if part.get("type") == "text")
    return content or ""
