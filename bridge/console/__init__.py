"""A conversation at the terminal: ``python -m bargein chat module:app``."""

from ._chat_command import add_options as add_options
from ._chat_command import chat as chat
from ._errors import ConsoleError as ConsoleError
from ._errors import VoiceError as VoiceError
from ._errors import VoiceExtraError as VoiceExtraError

__all__ = ["ConsoleError", "VoiceError", "VoiceExtraError", "add_options", "chat"]
