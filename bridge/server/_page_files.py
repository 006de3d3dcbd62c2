"""The files of the page, and what it shows before a call."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING

from pydantic_core import to_json

if TYPE_CHECKING:
    from .. import App

ABOUT_PATH = "/page/agent.json"
"""The path of what the page shows about the agent before a call; see ``about()``."""

CONTENT_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "txt": "text/plain; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "ico": "image/x-icon",
    "woff2": "font/woff2",
    "wav": "audio/wav",
}
"""The types of the page's files; other files of its folder are not served."""

PageFiles = dict[str, tuple[str, bytes]]
"""Path on the server → content type, body."""


def load_page() -> PageFiles:
    """Return the files of the package's folder ``page`` by path: ``/``, and below ``/page/``."""
    page: PageFiles = {}
    for path, file in _walk(files("bargein.bridge").joinpath("page"), "/page"):
        kind = CONTENT_TYPES.get(path.rpartition(".")[2])
        if kind is not None:
            page[path] = (kind, file.read_bytes())
    if "/page/index.html" in page:
        page["/"] = page["/page/index.html"]
    return page


def _walk(folder: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    if not folder.is_dir():
        return
    for entry in folder.iterdir():
        below = f"{path}/{entry.name}"
        if entry.is_dir():
            yield from _walk(entry, below)
        else:
            yield below, entry


def about(app: App, *, named: bool) -> bytes:
    """Return what the page shows of an app before a call, as JSON.

    Args:
        app: The app.
        named: Whether to include its name; not if callers need a token, because this needs none.
    """
    shown = {"audio": app.speech is not None, "hears": app.hears}
    return to_json(shown | ({"name": app.name} if named else {}))
