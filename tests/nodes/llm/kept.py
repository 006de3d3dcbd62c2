"""What a history makes of a model's calls."""

from __future__ import annotations

from bargein import ConversationContext, ToolEntry
from bargein.events import ToolCall, ToolResult
from bargein.llm import ToolCallRequest


def kept(pieces, said="") -> list:
    """The messages of the calls among pieces of an answer, each with a result."""
    calls = [piece for piece in pieces if isinstance(piece, ToolCallRequest)]
    entries = [
        ToolEntry(
            0.0,
            ToolCall(
                name=call.name,
                arguments=call.arguments or {},
                id=call.id,
                provider=call.provider,
                extra=call.extra,
            ),
            ToolResult(name=call.name, id=call.id, content="ok"),
            together=number > 0,
        )
        for number, call in enumerate(calls)
    ]
    message, *results = ConversationContext(entries=entries).as_chat()
    return [{**message, "content": said or None}, *results]
