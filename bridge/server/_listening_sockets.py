"""The sockets that a server listens on, and who can reach them."""

from __future__ import annotations

from collections.abc import Sequence

import trio

from ._origins import is_loopback


async def open_listeners(host: str, port: int) -> Sequence[trio.SocketListener]:
    """Listen on an address; port 0 picks a free port.

    Args:
        host: The address, or a name, which may have several addresses.
        port: The TCP port.

    Raises:
        OSError: The address cannot be listened on.
    """
    listeners = await trio.open_tcp_listeners(port, host=host)
    if port == 0:
        # Each address of a name would get a different port: keep the first.
        for other in listeners[1:]:
            await other.aclose()
        del listeners[1:]
    return listeners


def address_of(listeners: Sequence[trio.SocketListener]) -> tuple[str, int]:
    """Return the host and the port for a URL; ``("localhost", 0)`` for sockets without a port.

    Args:
        listeners: What a server listens on.
    """
    name = listeners[0].socket.getsockname()
    if not isinstance(name, tuple):
        return "localhost", 0
    host, port = name[:2]
    if host in ("0.0.0.0", "::"):  # compared, not bound
        host = "localhost"
    return (f"[{host}]" if ":" in host else host), port


def all_loopback(listeners: Sequence[trio.SocketListener]) -> bool:
    """Whether only this machine can reach any of the sockets.

    Args:
        listeners: What a server listens on.
    """
    names = [listener.socket.getsockname() for listener in listeners]
    return all(not isinstance(name, tuple) or is_loopback(name[0]) for name in names)
