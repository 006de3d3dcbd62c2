"""Weights are hashed in the background."""

from __future__ import annotations

import time
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from bargein.weights import MODELS, WeightsHashError, WeightsMissingError, path_of

LIMIT_S = 30.0

Lines = list[MutableMapping[str, Any]]


@pytest.fixture
def logs() -> Iterator[Lines]:
    """Return the lines that are logged."""
    with capture_logs() as lines:
        yield lines


def damaged(logs: Lines, *, wanted: int) -> Lines:
    """Wait until a number of files are logged, and return the log entries."""
    until_s = time.monotonic() + LIMIT_S
    while True:
        told = [line for line in logs if line["event"] == "model_damaged"]
        if len(told) >= wanted or time.monotonic() > until_s:
            return told
        time.sleep(0.01)


def test_whoever_asks_for_a_model_has_it_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logs: Lines
) -> None:
    """path_of() checks a file's size; one that is found damaged later is logged and set aside."""
    monkeypatch.setenv("BARGEIN_MODELS", str(tmp_path))
    files = []
    for name in ("silero-vad", "smart-turn"):
        [row] = [model for model in MODELS if model.name == name]
        folder = tmp_path / f"{row.name}-{row.wheel.version}"
        folder.mkdir()
        [file] = row.files
        (folder / file.name).write_bytes(bytes(file.size))
        files.append(str(folder / file.name))
    assert str(path_of("silero-vad")) == files[0]
    (told,) = damaged(logs, wanted=1)
    assert (told["log_level"], told["model"], told["file"]) == ("error", "silero-vad", files[0])
    assert told["remedy"].endswith("python -m bargein models --fetch silero-vad")
    with pytest.raises(WeightsMissingError):
        path_of("silero-vad")
    assert Path(f"{files[0]}.damaged").exists()
    path_of("smart-turn")  # is hashed after all that was asked for before
    assert [line["file"] for line in damaged(logs, wanted=2)] == files


def test_a_damaged_model_that_cannot_be_moved_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logs: Lines
) -> None:
    """As in a folder that belongs to somebody else: nobody loads it again in this process."""
    monkeypatch.setenv("BARGEIN_MODELS", str(tmp_path))
    [row] = [model for model in MODELS if model.name == "silero-vad"]
    folder = tmp_path / f"{row.name}-{row.wheel.version}"
    [file] = row.files
    (folder / f"{file.name}.damaged" / "in the way").mkdir(parents=True)
    (folder / file.name).write_bytes(bytes(file.size))
    path_of("silero-vad")
    damaged(logs, wanted=1)
    with pytest.raises(WeightsHashError):
        path_of("silero-vad")
