"""The port: listens, admits, limits, counts and drains; it knows no message of a wire."""

from ..wires._metrics import Metrics as Metrics
from ..wires._server_limits import Limits as Limits
from ._access import UnguardedError as UnguardedError
from ._run_server import run as run
from ._serve import open_server as open_server
from ._serve import serve as serve
from ._server import Server as Server
from ._signed_token import BadTokenError as BadTokenError
from ._signed_token import read_token as read_token
from ._signed_token import sign_token as sign_token

__all__ = [
    "BadTokenError",
    "Limits",
    "Metrics",
    "Server",
    "UnguardedError",
    "open_server",
    "read_token",
    "run",
    "serve",
    "sign_token",
]
