"""The folders of the user's cache that model files and marks are kept in."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """Return the folder that keeps the models of this user.

    Returns:
        The folder in ``BARGEIN_MODELS`` if that is set; else ``bargein/models`` in the user's
        cache folder: ``XDG_CACHE_HOME`` or ``~/.cache`` on Linux, ``~/Library/Caches`` on macOS,
        ``LOCALAPPDATA`` on Windows.  It may not exist yet.
    """
    if own := os.environ.get("BARGEIN_MODELS"):
        return Path(own).expanduser()
    return users_cache() / "models"


def users_cache() -> Path:
    """Return bargein's folder in the user's cache, wherever the models are kept."""
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "bargein"
