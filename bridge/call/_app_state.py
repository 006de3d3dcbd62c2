"""What an app keeps of one call, as a pydantic model: ``call.state``."""

from __future__ import annotations

from typing import Any, final

from pydantic import BaseModel

from bargein.routes.logs import get_logger

MAX_STATE_BYTES = 65_536
"""How long the state of a call may be, as JSON: it is written whole whenever it changes."""

log = get_logger()


@final
class AppState:
    """The state of one call.

    Attributes:
        value: An instance of the app's model.
    """

    __slots__ = ("_is_refused", "_model", "value")

    def __init__(self, model: type[BaseModel], saved: str | None) -> None:
        """Begin as another process had recorded it, or anew.

        Args:
            model: The app's model.
            saved: The recorded JSON; ``None`` for nothing.
        """
        self._model = model
        self._is_refused = False
        self.value = model()
        if saved is not None:
            try:
                self.value = model.model_validate_json(saved)
            except ValueError as error:
                log.error("saved_state_invalid", model=model.__name__, error=type(error).__name__)

    def set(self, value: Any) -> None:
        """Replace it.

        Raises:
            TypeError: It is of another type, or too long.
        """
        if not isinstance(value, self._model):
            raise TypeError(f"call.state is a {self._model.__name__}, not {type(value).__name__}")
        length = len(value.model_dump_json().encode())
        if length > MAX_STATE_BYTES:
            raise TypeError(self._too_long(length))
        self.value = value

    def dumped(self) -> str | None:
        """Return it as JSON; ``None``, and one line of the log, if it cannot be kept."""
        try:
            text = self.value.model_dump_json()
        except Exception as error:  # noqa: BLE001 - a field can be anything
            self._refuse(f"call.state cannot be written as JSON: {type(error).__name__}")
            return None
        length = len(text) if text.isascii() else len(text.encode())
        if length > MAX_STATE_BYTES:
            self._refuse(self._too_long(length))
            return None
        self._is_refused = False
        return text

    def _refuse(self, reason: str) -> None:
        if not self._is_refused:
            self._is_refused = True
            log.error("state_not_kept", reason=reason)

    def _too_long(self, length: int) -> str:
        return (
            f"call.state, a {self._model.__name__}, takes {length} bytes as JSON, and may take "
            f"{MAX_STATE_BYTES}: keep what is large elsewhere, and its name here"
        )
