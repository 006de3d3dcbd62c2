"""Handles a tool call while an identical one runs: it joins that one, or is refused.

Models repeat a call if its result takes long; ``@tool(on_duplicate=...)`` says what to do.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from bargein.bridge.events import ToolCall

from ._tool import Tool
from ._tool_call import RunningTool
from ._tool_context import ToolContext
from ._tool_outcome import FinalOutcome


def without_duplicate(
    tool: Tool, request: ToolCall, running: Iterable[RunningTool]
) -> tuple[Tool, FinalOutcome | None]:
    """Return the tool that carries out a call, and the outcome if the call is refused.

    Args:
        tool: The called tool, which must not run twice at once with the same arguments.
        request: The call.
        running: The agent's running tools.
    """
    wanted = _key(request.name, request.arguments)
    for other in running:
        if not other.is_cut and _key(other.name, other.arguments) == wanted:
            if tool.on_duplicate == "join":
                return _Joined(other), None
            text = f"an identical call of {tool.name!r} is running already; wait for its result"
            return tool, FinalOutcome("not_started", text, error=True)
    return tool, None


class _Joined(Tool):
    """Returns the result of an identical call that is already running."""

    def __init__(self, other: RunningTool) -> None:
        # Cancelling it is harmless, since it does nothing itself; the other one follows its policy.
        super().__init__(other.tool.name, read_only=True, on_duplicate="join", result_chars=None)
        self._other = other

    async def run(self, context: ToolContext, arguments: dict[str, Any]) -> str:
        await self._other.done.wait()
        final = self._other.final
        assert final is not None
        context.share(final)
        return final.content


def _key(name: str, arguments: Mapping[str, Any]) -> tuple[str, str]:
    return name, json.dumps(arguments, sort_keys=True, default=repr)
