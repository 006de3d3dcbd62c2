"""Tools that a model can call, each with a policy that says what an interrupt does to it."""

from typing import TYPE_CHECKING

from bargein.bridge.control import QuestionAnswer as QuestionAnswer
from bargein.routes.lazy_imports import lazy_imports

from ._errors import BadArgumentsError as BadArgumentsError
from ._errors import CommandError as CommandError
from ._errors import CommitOverrunError as CommitOverrunError
from ._errors import McpError as McpError
from ._errors import McpExtraError as McpExtraError
from ._errors import McpServerError as McpServerError
from ._errors import McpToolError as McpToolError
from ._errors import ToolDefinitionError as ToolDefinitionError
from ._errors import ToolError as ToolError
from ._errors import WorkerError as WorkerError
from ._interrupt_policy import Policy as Policy
from ._interrupt_policy import finish as finish
from ._interrupt_policy import shield as shield
from ._tool import Tool as Tool
from ._tool_call import RunningTool as RunningTool
from ._tool_context import ToolContext as ToolContext
from ._tool_context import commit as commit
from ._tool_context import current_tool as current_tool
from ._tool_decorator import FunctionTool as FunctionTool
from ._tool_decorator import tool as tool
from ._tool_runner import ToolRunner as ToolRunner
from ._transfer_tool import TransferTool as TransferTool

if TYPE_CHECKING:
    from bargein.bridge.control import AnswerPhrases as AnswerPhrases
    from bargein.nodes.processes import SignalLadder as SignalLadder

    from ._mcp import McpServer as McpServer
    from ._mcp import McpTool as McpTool
    from .processes import CommandTool as CommandTool
    from .processes import OutputLimits as OutputLimits
    from .processes import command_tool as command_tool
else:  # most tools are functions that ask nothing
    __getattr__ = lazy_imports(
        __name__,
        {
            "AnswerPhrases": "bargein.bridge.control",
            "CommandTool": ".processes",
            "SignalLadder": "bargein.nodes.processes",
            "McpServer": "._mcp",
            "McpTool": "._mcp",
            "OutputLimits": ".processes",
            "command_tool": ".processes",
        },
    )

__all__ = [
    "AnswerPhrases",
    "BadArgumentsError",
    "CommandError",
    "CommandTool",
    "CommitOverrunError",
    "FunctionTool",
    "McpError",
    "McpExtraError",
    "McpServer",
    "McpServerError",
    "McpTool",
    "McpToolError",
    "OutputLimits",
    "Policy",
    "QuestionAnswer",
    "RunningTool",
    "SignalLadder",
    "Tool",
    "ToolContext",
    "ToolDefinitionError",
    "ToolError",
    "ToolRunner",
    "TransferTool",
    "WorkerError",
    "command_tool",
    "commit",
    "current_tool",
    "finish",
    "shield",
    "tool",
]
