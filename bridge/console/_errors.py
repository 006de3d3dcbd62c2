"""What keeps a conversation at the console from beginning.

ChatError
└── VoiceError
ImportError
└── VoiceExtraError
"""

from __future__ import annotations


class ChatError(Exception):
    """The conversation cannot begin; its text says why and what to do."""


class VoiceError(ChatError):
    """There is no microphone or no loudspeaker that can be used."""


class VoiceExtraError(ImportError):
    """The library that brings microphone and loudspeaker is not there, or not whole."""
