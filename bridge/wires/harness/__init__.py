"""Harnesses: platforms that hear and speak themselves, and ask an agent for words."""

from ._line_transport import SendCustom as SendCustom
from ._retell_transport import ReminderWanted as ReminderWanted
from .completions import CompletionsWire as CompletionsWire
from .line import LineWire as LineWire
from .retell import RetellWire as RetellWire

__all__ = ["CompletionsWire", "LineWire", "ReminderWanted", "RetellWire", "SendCustom"]
