"""Harnesses: platforms that hear and speak themselves, and ask an agent for words."""

from ._line_transport import SendCustom as SendCustom
from .line import LineWire as LineWire

__all__ = ["LineWire", "SendCustom"]
