"""The weights that an engine has loaded, which it stops using once they are found damaged."""

from __future__ import annotations

from pathlib import Path
from typing import final

from ._background_check import checks
from ._store import ModelStore
from ._user_store import path_of


@final
class WeightsInUse:
    """The weights of one loaded engine; an engine calls ``check()`` before each use.

    Attributes:
        path: The file or folder that the engine loads.
    """

    def __init__(self, name: str, path: Path | None = None) -> None:
        """Find the weights, and follow the check of their files in the background.

        Args:
            name: Their name in the table.
            path: Weights of the app's own, which nobody checks; ``None`` uses the model store.

        Raises:
            WeightsError: The model store does not have them, or they are damaged.
        """
        self._folder = ModelStore().folder
        self._name = "" if path is not None else name
        self._damages_before = len(
            checks.damages(self._folder, self._name)
        )  # before the engine reads them
        self.path = path_of(name) if path is None else path

    def check(self) -> None:
        """Do nothing, unless the weights were found damaged since the engine loaded them.

        Raises:
            WeightsHashError: They were; fetch them again and open the engine anew.
        """
        damages = checks.damages(self._folder, self._name)
        if len(damages) > self._damages_before:
            raise damages[-1].with_traceback(None)
