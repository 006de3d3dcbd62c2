"""The errors of MCP servers.

McpError
├── McpExtraError      (also an ImportError) the package of the extra is not installed
├── McpServerError     the server cannot be started or reached, or does not list its tools
└── McpToolError       (also a ToolError) a tool call failed; the message is for the model
"""

from __future__ import annotations

from bargein.routes import BargeinError, SafeText

from ._errors import ToolError


class McpError(BargeinError):
    """An MCP server failed."""


class McpExtraError(SafeText, McpError, ImportError):
    """The package of the extra ``mcp`` is not installed."""

    def __init__(self) -> None:
        super().__init__("McpServer needs the package 'mcp'. Run: pip install \"bargein[mcp]\"")
        self.extra = "mcp"


class McpServerError(McpError):
    """A server cannot be started or reached, or violates the protocol."""

    def __init__(self, server: str, problem: str, detail: str = "") -> None:
        """Record the server and its problem.

        Args:
            server: The server's name.
            problem: What is wrong.
            detail: The last lines of its standard error.
        """
        super().__init__(server, problem, detail)
        self.server = server
        self.problem = problem
        self.detail = detail

    def __str__(self) -> str:
        said = f"; it said last: {self.detail!r}" if self.detail else ""
        return f"MCP server {self.server!r}: {self.problem}{said}"


class McpToolError(McpError, ToolError):
    """A tool call failed; the message is for the model."""

    def __init__(self, text: str, *, is_effect_unknown: bool = False) -> None:
        """Record the failure.

        Args:
            text: The message for the model.
            is_effect_unknown: Whether the server may have carried out the call, or some of it.
        """
        super().__init__(text)
        self.is_effect_unknown = is_effect_unknown
