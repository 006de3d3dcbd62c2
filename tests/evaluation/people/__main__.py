"""Measures turn taking on recordings of people: ``python -m tests.evaluation.people DIR``.

Every recording is played into a call in virtual time, with the shipped ears and turn taking.  A row
that misses its goal says so; the exit code is 0 all the same, as a goal is no bound.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import structlog

from .._row import as_json, head, lines
from . import _beside, _endings, _over
from ._engines import open_engines
from ._folder import Folder, RecordingsError
from ._ground import Ground, Measure
from ._sound import Surroundings

MEASURES: dict[str, Measure] = {
    "no-words": _over.no_words,
    "barge-ins": _over.barge_ins,
    "short-words": _over.short_words,
    "talker": _beside.another_talker,
    "same-caller": _beside.same_caller,
    "babble": _beside.in_babble,
    "echoes": _beside.echoes,
    "over-echo": _beside.barge_ins_over_echo,
    "numbers": _endings.numbers,
    "pauses": _endings.orders_with_pauses,
    "whole": _endings.whole_sentences,
}


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.evaluation.people", description=__doc__)
    parser.add_argument("folder", type=Path, help="see tests/evaluation/people/README.md")
    parser.add_argument("--most", type=int, default=24, metavar="N",
                        help="recordings of a kind that are played (%(default)s)")  # fmt: skip
    parser.add_argument("--seed", type=int, default=7, help="chooses them (%(default)s)")
    parser.add_argument("--only", action="append", choices=MEASURES, metavar="ROWS",
                        help=f"of {', '.join(MEASURES)}; may be given several times")  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there too")
    parser.add_argument("--replays", type=Path, metavar="FILE",
                        help="write the facts of each replay there, one JSON a line")  # fmt: skip
    parser.add_argument("--answers", type=Path, metavar="FILE",
                        help="keep the answers of Whisper and Smart Turn there")  # fmt: skip
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> int:
    """Play the recordings, print the rows, and return the exit code."""
    arguments = _arguments(given)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    try:
        folder = Folder(arguments.folder, arguments.most, arguments.seed)
        surroundings = Surroundings(folder)
    except RecordingsError as error:
        print(error, file=sys.stderr)
        return 2
    began_s, rows = time.monotonic(), []
    width = max(130, shutil.get_terminal_size((150, 24)).columns)
    print(f"{arguments.folder}: at most {arguments.most} of a kind, seed {arguments.seed}")
    print(head(width))
    with ExitStack() as stack:
        note = _notes(stack, arguments.replays)
        ground = Ground(
            stack.enter_context(open_engines(arguments.answers)), folder, surroundings, note
        )
        for name in arguments.only or MEASURES:
            for row in MEASURES[name](ground):
                print("\n".join(lines(row, width)), flush=True)
                rows.append(row)
    judged = [row for row in rows if row.judged]
    missed = sum(not row.passed for row in judged)
    print(f"\n{missed} of {len(judged)} goals missed; {time.monotonic() - began_s:.0f} s")
    if arguments.json:
        arguments.json.write_text(json.dumps(as_json(rows), indent=1) + "\n", encoding="utf-8")
    return 0


def _notes(stack: ExitStack, path: Path | None) -> Any:
    if path is None:
        return lambda facts: None
    file = stack.enter_context(path.open("w", encoding="utf-8"))
    return lambda facts: print(json.dumps(facts), file=file, flush=True)


if __name__ == "__main__":
    sys.exit(main())
