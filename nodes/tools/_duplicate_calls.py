"""A call of a tool while an identical one runs: it joins that one, or is refused.

Models repeat a call whose result does not come soon; ``@tool(on_duplicate=...)`` says what follows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from bargein.bridge.events import ToolCall

from ._outcome import Settled
from ._tool import Tool
from ._tool_call import RunningTool
from ._tool_context import ToolContext


def without_duplicate(
    tool: Tool, request: ToolCall, running: Iterable[RunningTool]
) -> tuple[Tool, Settled | None]:
    """Return what carries out a call, and why it is refused if it is.

    Args:
        tool: The tool that was called; it does not run twice at once with the same arguments.
        request: The call.
        running: The tools of the agent that run.
    """
    wanted = _key(request.name, request.arguments)
    for other in running:
        if not other.is_cut and _key(other.name, other.arguments) == wanted:
            if tool.on_duplicate == "join":
                return _Joined(other), None
            text = f"an identical call of {tool.name!r} is running already; wait for its result"
            return tool, Settled("not_started", text, error=True)
    return tool, None


class _Joined(Tool):
    """Gives the result of an identical call that was running already."""

    def __init__(self, other: RunningTool) -> None:
        # It does nothing itself, so cutting it does no harm; the other goes on by its own policy.
        super().__init__(other.tool.name, read_only=True, on_duplicate="join")
        self._other = other

    async def run(self, context: ToolContext, arguments: dict[str, Any]) -> str:
        await self._other.done.wait()
        final = self._other.final
        assert final is not None
        context.share(final)
        return final.content


def _key(name: str, arguments: Mapping[str, Any]) -> tuple[str, str]:
    return name, json.dumps(arguments, sort_keys=True, default=repr)
