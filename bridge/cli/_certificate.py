"""Reads the certificate and the key of a server, and warns of a key that others can read."""

from __future__ import annotations

import ssl
import sys
from pathlib import Path

_OTHERS = 0o007
"""Not the group: Debian gives keys to a group of its own, ssl-cert, with the mode 0640."""


def tls_context(cert: str | None, key: str | None) -> ssl.SSLContext | None:
    """Return the context of a server with this certificate; ``None`` without one.

    Args:
        cert: The file of the certificate chain, in PEM.
        key: The file of its private key; if users of this machine can read it who are neither its
            owner nor in its group, a warning says so on standard error.

    Raises:
        ValueError: One of the two is missing, or they cannot be used.
    """
    if (cert is None) != (key is None):
        raise ValueError("--cert and --key go together; give both or neither")
    if cert is None or key is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(cert, key)
        mode = Path(key).stat().st_mode & 0o777
    except OSError as error:
        raise ValueError(f"--cert {cert!r} and --key {key!r} cannot be used: {error}") from error
    if sys.platform != "win32" and mode & _OTHERS:
        sys.stderr.write(
            f"warning: --key {key!r} has the mode {mode:04o}, so every user of this machine can "
            f"read it; run: chmod 600 {key}\n"
        )
    return context
