"""The address of a session, and its limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bargein.bridge.validation.numbers import check_numbers
from bargein.bridge.websocket import Data

from ._error_table import ErrorTable


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorAddress:
    """Where to reach a vendor, and the fixed messages of a session."""

    vendor: str
    """The vendor's name, for errors and logs."""
    url: str = field(repr=False)
    """A ``wss://`` or ``ws://`` URL; its query is never shown."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers of the handshake, including the key."""
    greeting: Sequence[Data] = ()
    """Messages to send at the beginning of every connection."""
    keep_alive: Data | None = None
    """The message to send after `SessionLimits.keep_alive_s` of silence; ``None`` sends none."""
    farewell: Data | None = None
    """The message to send before closing the session; ``None`` sends none."""
    errors: ErrorTable | None = None
    """What the vendor's refusals and closes mean; ``None`` for HTTP's own meanings."""

    parse: Callable[[Data], Any] | None = field(default=None, repr=False)
    """Reads a message that is not JSON, such as frames with a header: returns an object, or bytes
    for audio that names no utterance; what it cannot read raises ValueError.  ``None`` reads JSON,
    in text or binary."""

    renew: Callable[[], Awaitable[VendorAddress]] | None = field(default=None, repr=False)
    """Makes the address of each connection, within `SessionLimits.connect_s`: for tokens that live
    for minutes, or a request that opens a session; ``None`` uses this address for all."""

    def __post_init__(self) -> None:
        """Check the address.

        Raises:
            ValueError: `url` is not the address of a WebSocket.
        """
        if not self.url.startswith(("ws://", "wss://")):
            shown = self.url.partition("?")[0].rpartition("@")[2]
            raise ValueError(f"the address of {self.vendor} is ws:// or wss://, not {shown!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    """The limits of a session, each above 0; times are seconds."""

    connect_s: float = 5.0
    """Limit for opening a connection."""
    keep_alive_s: float = 4.0
    """How long we send nothing before we send `VendorAddress.keep_alive`; Deepgram wants one every
    3 to 5 s."""
    stall_s: float = 10.0
    """How long a vendor may read nothing of what we send before the connection counts as lost."""
    ping_s: float = 10.0
    """How long a vendor may be silent before we ping it, and how long its pong may take."""
    answer_s: float = 10.0
    """How long a vendor that owes an answer may send nothing before it counts as failed."""
    attempts: int = 4
    """How many attempts in a row may fail before the session is given up."""
    first_wait_s: float = 0.25
    """Longest wait before the second attempt; doubled for each further one, with jitter."""
    max_wait_s: float = 4.0
    """Longest wait; if a vendor asks for more, there is no further attempt."""
    max_message_bytes: int = 4_194_304
    """Largest message of a vendor: 20 s of a voice at 48 kHz in base64, twice over."""
    max_waiting_bytes: int = 262_144
    """How many bytes may wait in each direction before ``send`` waits, or reading stops."""
    max_kept_bytes: int = 960_000
    """How many bytes may be kept to be sent again: 30 s of PCM16 at 16 kHz.  If a vendor takes
    audio in base64, an ear keeps as many seconds, in more bytes."""

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            TypeError: One of them is not a number.
            ValueError: One of them is not above 0, or infinite.
        """
        check_numbers(self, SessionLimits)
