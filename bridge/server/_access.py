"""Who may reach a server, under which names, and with which token."""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from bargein.routes import BargeinError

from .._call_request import Identity
from ..validation.arguments import check_strings
from ._signed_token import BadTokenError, check_secret, read_token

Origins = Sequence[str | re.Pattern[str]]

LOCAL_RIGHTS = frozenset({"watch", "control"})
"""The rights of callers in their own calls, on a server that only this machine can reach."""


_BARE_NAME = re.compile(r"[^\s/:*\[\]]+|[0-9a-fA-F.]*:[0-9a-fA-F:.]*")
"""A name or an address; no Host would ever equal anything else."""


class UnguardedError(BargeinError, ValueError):
    """A public server has no protection: it would let everybody call."""

    def __init__(self, where: str) -> None:
        super().__init__(
            f"strangers can reach {where}, and nothing keeps them out: give a token "
            "(--token, or BARGEIN_TOKEN), a secret for signed tokens (BARGEIN_TOKEN_SECRET) or "
            "App(..., admit=...); if everybody may call, say so with --insecure (insecure=True)"
        )


class EmptyTokenError(BargeinError, ValueError):
    """A server's token is empty, so every caller would have it."""

    def __init__(self, which: str) -> None:
        super().__init__(
            f"{which} is empty, which would admit callers without a token: is the variable that it "
            "comes from set?  To require no token, leave it out"
        )


@dataclass(frozen=True, kw_only=True)
class Access:
    """What requests are checked against before the app is asked.

    Raises:
        ValueError: The secret is too short, a token is empty, or a host name is none.
    """

    public: bool
    """Whether other machines can reach the server, directly or through a proxy."""
    listens_publicly: bool = True
    """Whether it listens on an address that other machines can reach."""
    host_names: Sequence[str] = ()
    """The names under which it is reached."""
    origins: Origins | None = None
    """Pages that may call; ``None`` allows this server's and, unless it is public, localhost's."""
    token: str | None = field(default=None, repr=False)
    """The token that callers and readers of the metrics must send; ``None`` requires none."""
    token_secret: str | None = field(default=None, repr=False)
    """The secret that verifies signed tokens; ``None`` accepts none."""
    metrics_token: str | None = field(default=None, repr=False)
    """The token that readers of the metrics may send instead."""

    def __post_init__(self) -> None:
        """Check the lists, the secret and the tokens before the first call."""
        check_strings("open_server(host_names=)", self.host_names)
        for name in self.host_names:
            if not _BARE_NAME.fullmatch(name):
                raise ValueError(
                    f"--host-name, or open_server(host_names=), is a bare name such as "
                    f"'voice.example.com', without a scheme, a port, a path or a *, not {name!r}"
                )
        if self.origins is not None:
            check_strings("open_server(origins=)", self.origins, re.Pattern)
        for which, token in (("token", self.token), ("metrics_token", self.metrics_token)):
            if token is not None and not token.strip():
                raise EmptyTokenError(which)
        if self.token_secret is not None:
            check_secret(self.token_secret)

    @property
    def needs_token(self) -> bool:
        """Whether callers must send a token."""
        return self.token is not None or self.token_secret is not None

    def identify(self, given: str) -> Identity | None:
        """Return the identity of a caller with this token; ``None`` if the token is not valid.

        Args:
            given: The token; empty if the caller sent none.
        """
        rights = frozenset() if self.public else LOCAL_RIGHTS
        if not self.needs_token or _is(given, self.token):
            return Identity(rights=rights)
        if self.token_secret is None:
            return None
        try:
            named = read_token(self.token_secret, given)
        except BadTokenError:
            return None
        return Identity(named.user, named.rights | rights)

    def may_read_metrics(self, given: str) -> bool:
        """Whether this token may read the metrics."""
        if self.metrics_token is None and not self.needs_token:
            return not self.public
        if any([_is(given, self.metrics_token), _is(given, self.token)]):
            return True
        named = None if self.token_secret is None else self.identify(given)
        return named is not None and "metrics" in named.rights


def _is(given: str, token: str | None) -> bool:
    return token is not None and hmac.compare_digest(given.encode(), token.encode())
