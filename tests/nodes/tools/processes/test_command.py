"""Commands as tools of a call."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from bridge.events import ToolCall, ToolOutput
from bridge.testing import open_call
from nodes.tools import BadArguments, ToolContext, ToolDefinitionError, ToolRunner
from nodes.tools._processes import CommandTool, Ladder, command_tool
