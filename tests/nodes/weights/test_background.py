"""Weights are hashed in the background."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from bargein.weights import MODELS, ModelStore, WeightsHashError, WeightsMissingError, path_of

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


def damaged_and_unmovable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a damaged model into a store, in which its file cannot be renamed."""
    monkeypatch.setenv("BARGEIN_MODELS", str(folder / "models"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    [row] = [model for model in MODELS if model.name == "silero-vad"]
    models = folder / "models" / f"{row.name}-{row.wheel.version}"
    [file] = row.files
    (models / f"{file.name}.damaged" / "in the way").mkdir(parents=True)
    (models / file.name).write_bytes(bytes(file.size))
    return models / file.name


def in_another_process() -> str:
    """Return what another process gets that asks for the model: its path, or the error."""
    program = (
        "from bargein.weights import path_of, WeightsError\n"
        "try: print(path_of('silero-vad'))\n"
        "except WeightsError as error: print(type(error).__name__, error)\n"
    )
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.proof  # it starts two processes
@pytest.mark.parametrize("is_folder_writable", [True, False])
def test_a_damaged_model_that_cannot_be_moved_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logs: Lines, is_folder_writable: bool
) -> None:
    """Nobody loads it again, in this process or a later one, until another file is there.

    As on a disk that is read-only, or in a folder that belongs to somebody else.
    """
    file = damaged_and_unmovable(tmp_path, monkeypatch)
    if not is_folder_writable:
        file.with_name(f".{file.name}.damaged").mkdir()  # the mark has no place there
    path_of("silero-vad")
    [told] = damaged(logs, wanted=1)
    assert told["known_to_others"]
    with pytest.raises(WeightsHashError, match="models --fetch silero-vad"):
        path_of("silero-vad")
    assert in_another_process().startswith("WeightsHashError")
    assert not ModelStore().is_present("silero-vad")
    new = file.with_name("new")
    new.write_bytes(bytes(file.stat().st_size))
    new.replace(file)  # as a fetch does
    assert in_another_process().startswith(str(file))
    path_of("silero-vad")
    damaged(logs, wanted=2)  # it is checked as well


def test_a_damaged_model_that_cannot_be_marked_is_refused_in_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logs: Lines
) -> None:
    """Where nothing can be written the log says that others do not know of it."""
    file = damaged_and_unmovable(tmp_path, monkeypatch)
    file.with_name(f".{file.name}.damaged").mkdir()
    (tmp_path / "cache").write_text("a file, no folder")
    path_of("silero-vad")
    [told] = damaged(logs, wanted=1)
    assert not told["known_to_others"]
    with pytest.raises(WeightsHashError):
        path_of("silero-vad")
