"""The server: one port for the page, ``/healthz``, ``/metrics`` and calls over ``/ws``."""

from ._limits import Limits as Limits
from ._metrics import Metrics as Metrics
from ._serve import Server as Server
from ._serve import open_server as open_server
from ._serve import run as run
from ._serve import serve as serve

__all__ = ["Limits", "Metrics", "Server", "open_server", "run", "serve"]
