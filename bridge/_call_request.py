"""How a call came: how a client requested it, who that is, and which process had it before."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from .validation.arguments import check_strings

if TYPE_CHECKING:
    from .history._entries import Entry

Direction = Literal["inbound", "outbound"]
"""Whether a call came in, or the app has placed it."""

_CONVERSATION = r"(?!\.+\Z)[\w.@:+~-]{1,128}"
"""Not dots alone: a store of the app's own may keep each conversation in a folder."""


def check_conversation(name: str) -> None:
    """Check the name of a conversation that a caller or a command wants to continue.

    Raises:
        ValueError: It has other characters than a URL shows as they are.
    """
    if not re.fullmatch(_CONVERSATION, name):
        raise ValueError(
            "conversation is 1 to 128 letters, digits or one of _.@:+~-, and not only dots"
        )


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a caller is, according to a signed token or the app, and what the caller may do.

    The server knows three rights: ``watch`` (see every event of its own call), ``control`` (use
    every verb on its own call) and ``operator`` (answer tools with ``permission="operator"``).  Any
    other word is the app's own.
    """

    user: str = ""
    """The caller's name or id; empty for nobody in particular."""
    rights: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Check the rights.

        Raises:
            TypeError: They are not a set of strings.
        """
        check_strings("Identity(rights=)", self.rights)


@dataclass(frozen=True, slots=True)
class Refusal:
    """What ``App(admit=...)`` returns to refuse a call and say why."""

    reason: str
    """One line for the caller, without anything that strangers should not know."""


@dataclass(frozen=True, slots=True)
class CallRequest:
    """What a client sent to open a call over the server; ``App(admit=...)`` gets it.

    Only ``identity`` is verified.  Trust the rest only as far as your app can check it: its own
    cookie, a signed token, an address set by a proxy you trust.  Its text, as in a log line, shows
    neither headers nor query nor token, nor what comes from them.
    """

    mode: Literal["audio", "text"]
    conversation: str | None = field(repr=False)
    """The conversation that it names; ``None`` for none."""
    headers: Mapping[str, str] = field(repr=False)
    """The headers by lower-case name; values of a repeated one are joined by commas."""
    query: Mapping[str, str] = field(repr=False)
    """The parameters of the address; the first value of a repeated one."""
    peer: str
    """The caller's address: that of the socket's other end or, if this is a trusted proxy, the one
    that the proxy names; empty for none."""
    token: str = field(default="", repr=False)
    """The bearer token, from the header or from ``?token=``; empty without one."""
    identity: Identity = field(default=Identity(), repr=False)
    """The caller according to a signed token; in ``call.request``, according to ``admit``."""
    secure: bool = False
    """Whether the caller's connection is encrypted, as far as the server or a trusted proxy
    knows."""
    direction: Direction = "inbound"
    """Whether the caller has called, or the app has called them."""
    answer: Callable[[Any], Awaitable[Any]] | None = field(default=None, repr=False)
    """The async function that answers the call instead of the app's; ``None`` for the app's."""
    call_id: str = ""
    """The id that the call gets, if its wire has told others already; empty for any."""
    token_expires_s: float | None = None
    """When the caller's signed token expires, in seconds since the epoch; ``None`` if it has
    none."""
    earlier: tuple[Entry, ...] = field(default=(), repr=False)
    """What was said before, as the client tells it: the history of the call begins with it, unless
    its conversation is stored."""


@dataclass(frozen=True, slots=True)
class Takeover:
    """How a call came to this process from another one."""

    fence: int
    """Grows with each process that takes the call."""
    lost_s: float
    """How many seconds lie between the last record of the other process and the take-over."""
    unfinished_tools: tuple[str, ...] = ()
    """The names of the tools that were running; what became of them is in the history."""
