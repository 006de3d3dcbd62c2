"""Errors that keep a conversation at the console from starting.

ConsoleError
└── VoiceError
ImportError
└── VoiceExtraError
"""

from __future__ import annotations

from bargein.routes import BargeinError


class ConsoleError(BargeinError):
    """The conversation cannot start; the message says why and what to do."""


class VoiceError(ConsoleError):
    """There is no usable microphone or loudspeaker."""


class VoiceExtraError(BargeinError, ImportError):
    """The library for microphone and loudspeaker is missing or incomplete."""
