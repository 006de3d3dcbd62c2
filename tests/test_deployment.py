"""As printed, the unit and the Dockerfile of docs/deployment.md find the weights of speech."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections import defaultdict
from pathlib import Path
from urllib.request import urlopen

import pytest

from bargein.cli import main
from bargein.weights import ModelStore

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "deployment.md").read_text()
NEEDED = {"silero-vad", "smart-turn", "whisper-tiny.en", "piper-joe"}
AGENT = """
from bargein import App
from bargein.speech import LocalSpeech, PiperVoice


async def answer(call):
    call.say("Hello.")


app = App(answer, speech=LocalSpeech(voice=PiperVoice()))
"""
READ_ONLY = """
mount --bind "$1" /mnt && mount -o remount,bind,ro / || exit
cd /mnt && shift
exec "$@"
"""
"""What ProtectSystem=strict leaves: a service may write to its state only.

A /tmp of its own (PrivateTmp=yes) is left out, because the project itself may lie under /tmp.
"""


def block(language: str) -> str:
    """Return the one block of the page in a language."""
    [found] = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


def unit() -> dict[str, list[str]]:
    """Return the settings of the service, with all values of each."""
    found = defaultdict(list)
    for line in block("ini").partition("[Service]\n")[2].partition("\n\n")[0].splitlines():
        name, _, value = line.partition("=")
        found[name].append(value)
    return found


def environment() -> dict[str, str]:
    """Return the variables that the unit sets."""
    return dict(value.split("=", 1) for value in unit()["Environment"])


def fetched(command: str) -> set[str]:
    """Return the models that a ``bargein models --fetch`` of the page names."""
    return set(command.partition("models --fetch ")[2].split(" &&")[0].split())


def test_the_unit_keeps_the_weights_where_the_service_may_write() -> None:
    """The folder of the weights is inside StateDirectory, because the home folder is hidden."""
    [state] = unit()["StateDirectory"]
    assert unit()["ProtectHome"] == ["yes"]
    assert environment()["BARGEIN_MODELS"].startswith(f"/var/lib/{state}/")
    [before] = unit()["ExecStartPre"]
    assert fetched(before) == NEEDED
    assert int(unit()["TimeoutStartSec"][0]) >= 300  # 152 MB over a slow line


def test_the_image_has_the_weights_where_its_user_reads_them() -> None:
    """The Dockerfile names the folder before it fetches, and fetches before it changes the user."""
    steps = [line for line in block("dockerfile").replace("\\\n", "").splitlines() if line]
    [folder] = [n for n, step in enumerate(steps) if step.startswith("ENV BARGEIN_MODELS=")]
    [fetch] = [n for n, step in enumerate(steps) if "models --fetch" in step]
    [user] = [n for n, step in enumerate(steps) if step.startswith("USER ")]
    assert folder < fetch < user
    assert fetched(steps[fetch]) == NEEDED
    assert "chmod -R a+rX" in steps[fetch]
    installed = " ".join(steps[:fetch])
    assert "requirements/local.txt" in installed
    assert "requirements/piper.txt" in installed


def test_the_extras_that_the_page_installs_are_those_of_local_speech() -> None:
    """The extras `local` and `piper` exist, and have the engines."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {"local", "piper"} <= extras["optional-dependencies"].keys()


@pytest.mark.parametrize("setting", ["ExecStart", "ExecStartPre"])
def test_the_commands_of_the_unit_are_accepted(
    setting: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Our command line knows the options that the unit gives it."""
    monkeypatch.chdir(tmp_path)  # without an app, which is told by 1; wrong usage by 2
    monkeypatch.setenv("BARGEIN_TOKEN", "of-sixteen-letters")
    words = shlex.split(unit()[setting][0])[1:]
    assert words[0] in ("serve", "models")
    if words[0] == "serve":
        assert main(words) == 1


@pytest.mark.proof
@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd checks its own units")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    """systemd finds nothing wrong with the unit, but for the program, which is not installed."""
    path = tmp_path / "voice.service"
    path.write_text(block("ini").replace("/srv/voice/.venv/bin/bargein", sys.executable))
    command = ["systemd-analyze", "verify", "--man=no", str(path)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60).stderr
    assert [line for line in told.splitlines() if "voice.service" in line] == []


@pytest.mark.proof
def test_the_service_hears_and_speaks_in_a_root_that_cannot_be_written(tmp_path: Path) -> None:
    """With the unit's variables, no home and a read-only root, ``serve`` loads speech and stops.

    The weights are those of this machine's cache; so fetching them again only checks them.
    """
    can_unshare = not subprocess.run(
        ["unshare", "-rm", "sh", "-c", "mount --bind /tmp /mnt && mount -o remount,bind,ro /"],
        capture_output=True,
    ).returncode
    home = Path("/mnt") if can_unshare else tmp_path
    (tmp_path / "agent.py").write_text(AGENT)
    for name in NEEDED:
        folder = ModelStore().location(name)
        folder = folder if folder.is_dir() else folder.parent
        shutil.copytree(folder, tmp_path / "models" / folder.name)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    variables = {
        **environment(),
        "BARGEIN_MODELS": str(home / "models"),
        "BARGEIN_TOKEN": "of-sixteen-letters-and-more",
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
    }
    inside = ["unshare", "-rm", "sh", "-c", READ_ONLY, "sh", str(tmp_path)] if can_unshare else []
    bargein = [*inside, sys.executable, "-m", "bargein"]
    before = shlex.split(unit()["ExecStartPre"][0])[1:]
    subprocess.run([*bargein, *before], env=variables, cwd=tmp_path, check=True, timeout=120)
    start = [*shlex.split(unit()["ExecStart"][0])[1:], "--port", str(port)]
    log = tmp_path / "log"
    with log.open("w") as out:
        service = subprocess.Popen([*bargein, *start], env=variables, cwd=tmp_path, stderr=out)
    try:
        assert status(port, service, log) == 200
        assert '"speech_ready"' in log.read_text()
        service.send_signal(signal.SIGTERM)
        assert service.wait(int(unit()["TimeoutStopSec"][0])) == 0, log.read_text()
    finally:
        service.kill()
        service.wait()


def status(port: int, service: subprocess.Popen[bytes], log: Path) -> int:
    """Return how ``/healthz`` answers, once it does."""
    until = time.monotonic() + 120
    while time.monotonic() < until and service.poll() is None:
        try:
            with urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5) as answer:
                return int(answer.status)
        except OSError:  # not yet
            time.sleep(0.2)
    raise AssertionError(log.read_text())
