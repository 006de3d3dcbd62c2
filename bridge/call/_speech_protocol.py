"""What an app needs from the speech engines."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ._call import Call


class Speech(Protocol):
    """Ears and a voice for calls with audio.

    Speech without ears sets ``hears = False``; the page then says so, and asks for no microphone.
    """

    def open(self) -> AbstractAsyncContextManager[object]:
        """Load and warm the engines that all calls of the process share."""
        ...

    def attach(self, call: Call) -> None:
        """Add the routes that hear and speak in one call."""
