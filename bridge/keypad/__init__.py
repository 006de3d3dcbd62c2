"""What callers enter by the keys of their telephone: menus, numbers, and what nobody may know."""

from ._keypad import KeyCheckError as KeyCheckError
from ._keypad import Keypad as Keypad
from ._privacy import CanPauseRecording as CanPauseRecording

__all__ = ["CanPauseRecording", "KeyCheckError", "Keypad"]
