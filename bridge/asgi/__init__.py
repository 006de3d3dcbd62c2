"""Agents in somebody else's web server: FastAPI, Starlette, and any other ASGI host."""

from ._app import AsgiApp as AsgiApp
from ._app import app as app

__all__ = ["AsgiApp", "app"]
