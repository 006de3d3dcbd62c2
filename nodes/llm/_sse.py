"""A decoder of server-sent events: bytes in, the data of complete events out.

WHATWG HTML, section 9.2.6 "Interpreting an event stream". Language models need no ids or
reconnection times, and event names only for errors: some servers report one as a plain object or
text in an event named ``error``, and llama.cpp's in a field of its own.
"""

from __future__ import annotations

import json

from pydantic_core import from_json

from bargein.routes import BargeinError

MAX_EVENT_BYTES = 4 << 20
"""A larger event is an error: the longest that a chat endpoint has reason to send, a whole answer
with its tool calls, has a few hundred kilobytes."""


class EventTooLargeError(BargeinError, ValueError):
    """An event of a server exceeds `MAX_EVENT_BYTES`."""


class EventStreamDecoder:
    """Splits a byte stream into events, wherever the network cuts it."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._is_error = False
        self._after_cr = False
        self._at_start = True

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the data of the events that are now complete.

        Args:
            chunk: The next bytes, any number of them.

        Returns:
            UTF-8, the lines of an event joined by newlines; comments and events without data are
            left out.

        Raises:
            EventTooLargeError: One event exceeds `MAX_EVENT_BYTES`.
        """
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")  # CR LF that was cut in the middle is one line end
        if b"\n" not in chunk and b"\r" not in chunk:
            # Only buffered, so that a long line in many chunks is not parsed again with each of
            # them.
            self._rest += chunk
            self._check_size()
            return []
        lines = bytes(self._rest + chunk).splitlines(keepends=True)  # at CR, LF and CR LF only
        whole = not lines or lines[-1].endswith((b"\n", b"\r"))
        self._rest = bytearray(b"" if whole else lines.pop())
        self._after_cr = chunk.endswith(b"\r")
        events = [event for line in lines if (event := self._line(line)) is not None]
        self._check_size()
        return events

    def _check_size(self) -> None:
        if self._size + len(self._rest) > MAX_EVENT_BYTES:
            raise EventTooLargeError(f"an event exceeds {MAX_EVENT_BYTES} bytes")

    def close(self) -> list[bytes]:
        """Return the last event of a server that does not send the final blank line."""
        data, self._data = self._data, []
        return [self._event(data)] if data else []

    def _event(self, data: list[bytes]) -> bytes:
        """Return the data of an event; that of an error as one."""
        is_error, self._is_error = self._is_error, False
        whole = b"\n".join(data)
        return _as_error(whole) if is_error else whole

    def _line(self, line: bytes) -> bytes | None:
        """Handle a line; return an event's data if the line ends one."""
        line = line.rstrip(b"\r\n")
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            data, self._data, self._size = self._data, [], 0
            event = self._event(data) if data else None
            self._is_error = False
            return event
        name, _, value = line.partition(b":")
        if name == b"data":
            value = value.removeprefix(b" ")
            self._data.append(value)
            self._size += len(value)
        elif name == b"error":
            self._data.append(value.strip())
            self._size += len(value)
            self._is_error = True
        elif name == b"event" and value.strip() == b"error":
            self._is_error = True
        return None


def _as_error(data: bytes) -> bytes:
    """Return the data of an error as the object in which most servers report it."""
    try:
        told = from_json(data)
    except ValueError:
        told = data.decode("utf-8", "replace")
    if isinstance(told, dict) and (told.get("error") or told.get("type") == "error"):
        return data
    return json.dumps({"type": "error", "error": told}).encode()
