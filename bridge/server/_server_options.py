"""The keyword options of a server, as types."""

from __future__ import annotations

import ssl as ssl_module
from collections.abc import Sequence
from typing import TypedDict

from ..wires._server_limits import Limits
from ..wires._wire import Wire
from ._access import Origins
from ._listening_sockets import ServerListener


class SharedOptions(TypedDict, total=False):
    """The options of a server that does not listen by itself; ``open_server`` documents each."""

    wires: Sequence[Wire] | None
    public_url: str | None
    token: str | None
    token_secret: str | None
    second_token_secret: str | None
    audience: str | None
    issuer: str | None
    calls_expire: bool
    metrics_token: str | None
    host_names: Sequence[str]
    origins: Origins | None
    trusted_proxies: Sequence[str]
    insecure: bool
    limits: Limits | None


class ServerOptions(SharedOptions, total=False):
    """The keyword options of ``open_server``, which documents each of them."""

    host: str
    port: int
    ssl: ssl_module.SSLContext | None
    listeners: Sequence[ServerListener] | None
