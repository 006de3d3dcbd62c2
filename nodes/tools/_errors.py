"""Errors of tools.

ToolDefinitionError      a tool is declared wrongly; raised by the declaration
ToolError                a tool tells the model what went wrong
├── BadArgumentsError    a model called a tool with wrong arguments
└── CommitOverrunError   a commit section did not end by its deadline
ProcessError             something is wrong with a process that a tool runs in
├── CommandError         a command cannot be started
├── WorkerError          a worker process cannot do its work
│   ├── WorkerStartError     the process does not start
│   └── WorkerDiedError      the process ended in the middle of a call
└── WorkerCallError      the function in the worker raised
McpError                 an MCP server failed
├── McpExtraError        (also an ImportError) the package of the extra is not installed
├── McpServerError       the server cannot be started or reached, or does not list its tools
└── McpToolError         (also a ToolError) a tool call failed; the message is for the model
"""

from __future__ import annotations

from bargein.routes import BargeinError, SafeText


class ToolDefinitionError(SafeText, BargeinError, TypeError):
    """A tool is declared wrongly; raised by the declaration that makes the mistake."""


class ToolError(BargeinError):
    """A tool tells the model what went wrong: its text is the result of the tool.

    Of any other exception of a tool the model, and so its vendor, gets only the class: its text may
    hold paths, keys or rows of a database.
    """


class BadArgumentsError(ToolError, ValueError):
    """A tool was called with wrong arguments; the message tells the model how to correct them."""


class CommitOverrunError(ToolError, TimeoutError):
    """A commit section did not end by its deadline; its effect is unknown."""

    def __init__(self, tool: str, deadline_s: float) -> None:
        super().__init__(tool, deadline_s)
        self.tool = tool
        self.deadline_s = deadline_s

    def __str__(self) -> str:
        return f"the commit section of {self.tool!r} was not over after {self.deadline_s} s"


class ProcessError(BargeinError, RuntimeError):
    """Something is wrong with a process that a tool runs in."""


class CommandError(ProcessError):
    """A command cannot be started."""


class WorkerError(ProcessError):
    """A worker process cannot do its work."""


class WorkerStartError(WorkerError):
    """A worker process does not start."""


class WorkerDiedError(WorkerError):
    """A worker process ended in the middle of a call; the effect of the call is unknown."""


class WorkerCallError(ProcessError):
    """The function in the worker raised.

    Attributes:
        class_name: The name of the exception's class.
        text: Its message.
        traceback_text: Its traceback, as Python prints it.
        state_lost: Whether the worker is a new process without the variables of earlier calls,
            which may be the cause.
        is_for_model: Whether it was a `ToolError`, whose text is for the model.
    """

    def __init__(
        self,
        class_name: str,
        text: str,
        traceback_text: str,
        state_lost: bool = False,
        is_for_model: bool = False,
    ) -> None:
        super().__init__(class_name, text, traceback_text, state_lost, is_for_model)
        self.is_for_model = is_for_model
        self.class_name = class_name
        self.text = text
        self.traceback_text = traceback_text
        self.state_lost = state_lost

    def __str__(self) -> str:
        said = f"{self.class_name}: {self.text}" if self.text else self.class_name
        lost = " (the worker was replaced: what earlier calls kept in its variables is lost)"
        return said + lost * self.state_lost


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
