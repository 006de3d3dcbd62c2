"""Weights are hashed behind the back of who uses them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from bargein.nodes.weights._background import BackgroundCheck, checks
from bargein.weights import MODELS, Model, ModelFile, ModelStore, Wheel, path_of

WEIGHTS = b"weights " * 1000
SHA256 = hashlib.sha256(WEIGHTS).hexdigest()
LIMIT_S = 30.0

Lines = list[MutableMapping[str, Any]]


def store_of(folder: Path, *names: str, content: bytes = WEIGHTS) -> ModelStore:
    """Return a store that has models of one file each, all of the right size."""
    table = []
    for name in names:
        file = ModelFile(f"data/{name}.onnx", SHA256, len(WEIGHTS))
        wheel = Wheel(name, "1.0", 9000)
        table.append(Model(name, "testing", "MIT", "Ours.", wheel, (file,), f"{name}.onnx"))
        (folder / f"{name}-1.0").mkdir(parents=True)
        (folder / f"{name}-1.0" / f"{name}.onnx").write_bytes(content)
    return ModelStore(folder, table=table)


@pytest.fixture
def logs() -> Iterator[Lines]:
    """Return the lines that are logged."""
    with capture_logs() as lines:
        yield lines


class Counting(ModelStore):
    """Keeps what was hashed."""

    def verify(self, name: str, *, rest: float = 0.0) -> None:
        """Hash a model, and keep its name; the thread of it rests."""
        assert rest > 0
        hashed.append(name)
        super().verify(name, rest=rest)


hashed: list[str] = []


def test_each_model_is_hashed_once(tmp_path: Path, logs: Lines) -> None:
    """However often it is used; one that is as pinned is told by nothing."""
    hashed.clear()
    store = Counting(tmp_path, table=store_of(tmp_path, "one", "two").table)
    check = BackgroundCheck()
    for name in ("one", "one", "two", "one"):
        check.add(store, name)
        assert check.wait(LIMIT_S)
    assert hashed == ["one", "two"]
    assert not logs


def test_a_damaged_file_is_an_error_in_the_log(tmp_path: Path, logs: Lines) -> None:
    """It names the file and how to fetch it again; a model that is as pinned is not told of."""
    store = store_of(tmp_path, "one", "two", content=bytes(len(WEIGHTS)))
    (tmp_path / "two-1.0" / "two.onnx").write_bytes(WEIGHTS)
    check = BackgroundCheck()
    check.add(store, "one")
    check.add(store, "two")
    assert check.wait(LIMIT_S)
    assert logs == [
        {
            "event": "model_damaged",
            "log_level": "error",
            "model": "one",
            "file": str(tmp_path / "one-1.0" / "one.onnx"),
            "remedy": "Fetch it again: python -m bargein models --fetch one",
        },
    ]


def test_a_model_that_goes_meanwhile_is_no_error(tmp_path: Path, logs: Lines) -> None:
    """Whoever loads it is told; the thread only says that it was not checked."""
    store = store_of(tmp_path, "one")
    (tmp_path / "one-1.0" / "one.onnx").unlink()
    check = BackgroundCheck()
    check.add(store, "one")
    assert check.wait(LIMIT_S)
    assert [(line["event"], line["error"]) for line in logs] == [
        ("model_not_checked", "WeightsMissingError")
    ]


def test_whoever_asks_for_a_model_has_it_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logs: Lines
) -> None:
    """path_of goes by the size of a file, which is then hashed, and told of once."""
    monkeypatch.setenv("BARGEIN_MODELS", str(tmp_path))
    [row] = [model for model in MODELS if model.name == "silero-vad"]
    folder = tmp_path / f"{row.name}-{row.wheel.version}"
    folder.mkdir()
    [file] = row.files
    (folder / file.name).write_bytes(bytes(file.size))
    assert path_of("silero-vad") == folder / file.name
    assert checks.wait(LIMIT_S)
    assert [line["file"] for line in logs if line["event"] == "model_damaged"] == [
        str(folder / file.name)
    ]
    path_of("silero-vad")
    assert checks.wait(LIMIT_S)
    assert [line["event"] for line in logs].count("model_damaged") == 1
