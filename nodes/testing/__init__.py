"""A scripted language model for tests, as strict as real providers.

model = ScriptedModel([calls("find_table", day="Friday")], "Table 7 is free.")
"""

from __future__ import annotations

from ._request import CalledTool, ModelRequest
from ._request_checks import anthropic_problems, chat_problems, request_problems
from ._script import Piece, Reply, ScriptedCall, ScriptError, calls, words
from ._scripted_model import ScriptedModel
from .checks import (
    CheckOptions,
    CheckReport,
    CheckResult,
    ProviderCheckError,
    check_ear,
    check_llm,
    check_speech_to_speech,
    check_voice,
)

__all__ = [
    "CalledTool",
    "CheckOptions",
    "CheckReport",
    "CheckResult",
    "ModelRequest",
    "Piece",
    "ProviderCheckError",
    "Reply",
    "ScriptError",
    "ScriptedCall",
    "ScriptedModel",
    "anthropic_problems",
    "calls",
    "chat_problems",
    "check_ear",
    "check_llm",
    "check_speech_to_speech",
    "check_voice",
    "request_problems",
    "words",
]
