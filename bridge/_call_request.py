"""How a client asked for its call, and who it turned out to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a caller is, according to a signed token or the app, and what the caller may do.

    The server knows three rights: ``watch`` (see every event of its own call), ``control`` (use
    every verb on its own call) and ``operator`` (answer tools with ``permission="operator"``).  Any
    other word is the app's own.
    """

    user: str = ""
    """Names the caller; empty: nobody in particular."""
    rights: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Refusal:
    """What ``App(admit=...)`` returns to refuse a call and say why."""

    reason: str
    """Told to the caller: one line, without what strangers should not know."""


@dataclass(frozen=True, slots=True)
class CallRequest:
    """What a client sent to open a call over the server; apps decide by it.

    Only ``identity`` is verified.  Trust the rest as far as your app can check it: a cookie of its
    own, a signed token, an address set by a proxy you trust.
    """

    mode: Literal["audio", "text"]
    conversation: str | None
    """The conversation that it names; None if it names none."""
    headers: Mapping[str, str]
    """By their names in lower case; values of a repeated one are joined by commas."""
    query: Mapping[str, str]
    """The parameters of the address; of a repeated one the first."""
    peer: str
    """The caller's address: of the other end of the socket or, where that is a trusted proxy, the
    one that the proxy names; empty where there is none."""
    token: str = field(default="", repr=False)
    """The bearer token, of the header or of ``?token=``; empty without one."""
    identity: Identity = Identity()
    """Whom a signed token names; in ``call.request`` also what ``admit`` made of it."""
    secure: bool = False
    """Whether the caller's connection is encrypted, as far as the server or a trusted proxy
    knows."""
