"""What an app needs from the speech engines."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ._call import Call


class Speech(Protocol):
    """Ears and a voice for calls with audio.

    Speech without ears has an attribute ``hears`` that is false; the page then asks for no
    microphone and says so.
    """

    def open(self) -> AbstractAsyncContextManager[object]:
        """Load and warm what all calls of the process share."""
        ...

    def attach(self, call: Call) -> None:
        """Add the routes that hear and speak in one call."""
