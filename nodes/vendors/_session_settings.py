"""Whom a session is with, and what it may take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bargein.bridge.websocket import Data


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorAddress:
    """Where a vendor is reached, and what it wants to be told first."""

    vendor: str
    """Its name, in errors and logs."""
    url: str
    """``wss://`` or ``ws://``, without secrets."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers of the handshake; the key is one of them."""
    greeting: Sequence[Data] = ()
    """Messages with which every line begins."""
    keep_alive: Data | None = None
    """Sent when nothing else was for a while; None: nothing is."""
    farewell: Data | None = None
    """Sent before the session is closed; None: nothing is."""

    def __post_init__(self) -> None:
        """Check the address.

        Raises:
            ValueError: It is none of a WebSocket.
        """
        if not self.url.startswith(("ws://", "wss://")):
            shown = self.url.partition("?")[0]
            raise ValueError(f"the address of {self.vendor} is ws:// or wss://, not {shown!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    """What a session may take; times in seconds."""

    connect_s: float = 5.0
    """Until a line is open."""
    keep_alive_s: float = 4.0
    """Silence of ours after which `VendorAddress.keep_alive` is sent: Deepgram wants one every 3
    to 5 s."""
    stall_s: float = 10.0
    """For how long a vendor may take nothing of what is sent, before the line counts as lost."""
    ping_s: float = 10.0
    """After how much silence a vendor is pinged, and how long its answer may take."""
    answer_s: float = 10.0
    """For how long a vendor may send nothing that owes an answer, before it counts as lost."""
    attempts: int = 4
    """How often in a row a line is opened before the session is given up."""
    first_wait_s: float = 0.25
    """Longest wait before the second attempt; doubled for each further one, with jitter."""
    max_wait_s: float = 4.0
    """Longest wait; a vendor that asks for more is not asked again."""
    max_message_bytes: int = 4_194_304
    """Largest message of the vendor's: 20 s of a voice at 48 kHz as base64 twice over."""
    max_waiting_bytes: int = 262_144
    """What may wait on either side before ``send`` waits, and before nothing more is read."""
    max_kept_bytes: int = 960_000
    """What may be kept to be sent again: 30 s of PCM16 at 16 kHz; an ear whose vendor takes audio
    in base64 keeps as many seconds, in more bytes."""

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            ValueError: One is out of its bounds.
        """
        for name in self.__slots__:
            value = getattr(self, name)
            if not value > 0:
                raise ValueError(f"SessionLimits({name}=) is above 0, not {value!r}")
