"""Measures turn taking on real audio: ``python -m tests.evaluation``.

A simulated caller with synthesised voices calls the real server with the offline speech stack, and
behaves like callers. Everything is measured in the audio that the caller hears. Exits with 1 if a
bound is broken.
"""

from __future__ import annotations

from bargein.cli import exit_code  # first: Ctrl+C is one line while the rest is loaded, too

# isort: split
import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import trio

from bargein.rehearsal import draw

from . import _at_places, _rooms_cases, _talking, _turns_cases
from ._found import Found
from ._row import MeasurementRow, as_json, row_lines, row_sentence, table_heading
from ._stage import Stage, Take, open_stage

Case: TypeAlias = Callable[[Stage], Awaitable[Found]]

CASES: dict[str, Case] = {
    "acknowledgement": _talking.acknowledgement,
    "places": _at_places.places,
    "cough": _talking.coughing,
    "hesitation": _turns_cases.hesitation,
    "correction": _talking.correction,
    "noise": _rooms_cases.noise,
    "talk": _rooms_cases.talking,
    "echo": _rooms_cases.echoes,
    "twice": _talking.twice,
    "tool": _talking.stopped_tool,
    "muted": _talking.muted,
    "telephone": _rooms_cases.phone,
    "answers": _turns_cases.answers,
}


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.evaluation", description=__doc__)
    parser.add_argument("--only", action="extend", nargs="+", choices=CASES, metavar="CASE",
                        help=f"of {', '.join(CASES)}")  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path("eval-out"), metavar="DIR",
                        help="where the pictures and recordings go (%(default)s)")  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table there too")
    return parser.parse_args(given)


async def play(names: Sequence[str], tell: Callable[[str], None]) -> Found:
    """Play cases on one server, one after the other, and report their rows as they come."""
    whole, width = Found(), _width()
    tell("loading voices and models …")
    began_s = time.monotonic()
    place = ""

    async with open_stage(lambda call: tell(f"  {place} {call} …")) as stage:
        tell(f"ready after {time.monotonic() - began_s:.0f} s\n")
        tell(table_heading(width))
        for number, name in enumerate(names, start=1):
            place = f"[{number}/{len(names)}]"
            found = await CASES[name](stage)
            for row in found.rows:
                tell("\n".join(row_lines(row, width)))
            whole.rows += found.rows
            whole.takes += found.takes
    return whole


def write(takes: Sequence[Take], out: Path) -> list[Path]:
    """Draw a picture of each call, and write its recording to the same folder."""
    out.mkdir(parents=True, exist_ok=True)
    pictures = []
    for take in takes:
        picture = out / f"{take.name}.png"
        canvas = draw(
            take.result,
            take.notes,
            title=take.title,
            verdict="; ".join(map(row_sentence, take.rows)),
            ok=all(row.passed for row in take.rows),
            closeups=3,
        )
        canvas.save(picture)
        take.result.recording.write_wav(picture.with_suffix(".wav"))
        pictures.append(picture)
    return pictures


def _width() -> int:
    return max(130, shutil.get_terminal_size((150, 24)).columns)


def summary(rows: Sequence[MeasurementRow], seconds: float) -> str:
    """Return the last line: how many bounds were broken."""
    judged = [row for row in rows if row.judged]
    broken = [row for row in judged if not row.passed]
    return f"{len(broken)} of {len(judged)} bounds broken; {seconds:.0f} s"


def main(given: Sequence[str] | None = None) -> int:
    """Play the cases, print their rows, write the pictures, and return the exit code."""
    arguments = _arguments(given)
    began_s = time.monotonic()
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"cores: {os.cpu_count()}; load average: {load}")
    found = trio.run(play, arguments.only or list(CASES), lambda text: print(text, flush=True))
    seconds = time.monotonic() - began_s
    print(f"\n{summary(found.rows, seconds)}", flush=True)
    pictures = write(found.takes, arguments.out)
    print(f"{len(pictures)} pictures and recordings in {arguments.out}")
    if arguments.json:
        whole = {"seconds": seconds, "load": load, "rows": as_json(found.rows)}
        arguments.json.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n")
    return 0 if all(row.passed for row in found.rows) else 1


if __name__ == "__main__":
    sys.exit(exit_code(main))
