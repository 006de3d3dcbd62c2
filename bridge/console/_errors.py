"""What keeps a conversation at the console from beginning.

ConsoleError
└── VoiceError
ImportError
└── VoiceExtraError
"""

from __future__ import annotations

from bargein.routes import BargeinError


class ConsoleError(BargeinError):
    """The conversation cannot begin; its text says why and what to do."""


class VoiceError(ConsoleError):
    """There is no microphone or no loudspeaker that can be used."""


class VoiceExtraError(BargeinError, ImportError):
    """The library that brings microphone and loudspeaker is not there, or not whole."""
