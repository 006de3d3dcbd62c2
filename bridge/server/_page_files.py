"""The files of the page, and what it shows of the agent and of the verbs."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING

from pydantic_core import to_json

from ..control._call_state import STATE_WORDS
from ..control.verbs import ROWS

if TYPE_CHECKING:
    from .._app import App

ABOUT_PATH = "/page/agent.json"
"""The path of what the page is told before a call: of the agent, the verbs and the states."""

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


def load_page(app: App, *, named: bool) -> PageFiles:
    """Return the files of the package's folder ``page`` by path: ``/``, and below ``/page/``.

    Args:
        app: What the page tells about before a call.
        named: Whether to tell its name; not if callers need a token, because this needs none.
    """
    page: PageFiles = {}
    for path, file in _walk(files("bargein.bridge").joinpath("page"), "/page"):
        kind = CONTENT_TYPES.get(path.rpartition(".")[2])
        if kind is not None:
            page[path] = (kind, file.read_bytes())
    page["/"] = page["/page/index.html"]
    about = {
        "audio": app.speech is not None,
        "hears": app.hears,
        "verbs": {verb: row.shown() for verb, row in ROWS.items() if row.button},
        "states": STATE_WORDS,
    }
    page[ABOUT_PATH] = CONTENT_TYPES["json"], to_json(about | ({"name": app.name} if named else {}))
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
