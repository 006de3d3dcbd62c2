"""A decoder of server-sent events: bytes in, the data of complete events out.

WHATWG HTML, section 9.2.6 "Interpreting an event stream". Only ``data`` is read: language models
need no event names, ids or reconnection times.
"""

from __future__ import annotations

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
        return [b"\n".join(data)] if data else []

    def _line(self, line: bytes) -> bytes | None:
        """Handle a line; return an event's data if the line ends one."""
        line = line.rstrip(b"\r\n")
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            data, self._data, self._size = self._data, [], 0
            return b"\n".join(data) if data else None
        name, _, value = line.partition(b":")
        if name == b"data":
            value = value.removeprefix(b" ")
            self._data.append(value)
            self._size += len(value)
        return None
