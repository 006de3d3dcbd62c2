"""docs/control.md tells of the states and verbs that there are."""

from __future__ import annotations

import re
from pathlib import Path

from bargein import Handle, InterruptToken, Receipt
from bargein.control import STRENGTH, VERBS

PAGE = (Path(__file__).parents[1] / "docs" / "control.md").read_text()


def test_every_verb_has_its_row():
    """The table of verbs has each verb of the handle, and no other."""
    table = PAGE.partition("## Choose a verb")[2].partition("\n\nAn answer")[0]
    assert sorted(re.findall(r"^\| `(\w+)\(", table, re.MULTILINE)) == sorted(VERBS)
    assert all(callable(getattr(Handle, verb)) for verb in VERBS)


def test_the_order_is_that_of_their_strength():
    """The sentence that ranks the verbs has them all, but resume, the strongest first."""
    listed = PAGE.partition("in this order: ")[2].partition(".")[0]
    words = [word.replace(" ", "_").replace("-", "_") for word in listed.split(", ")]
    assert words == sorted(set(VERBS) - {"resume"}, key=lambda verb: -STRENGTH[verb])


def test_every_part_of_a_receipt_is_told_of():
    """The table of a receipt names all its attributes."""
    table = PAGE.partition("## Read a receipt")[2].partition("A verb that")[0]
    named = set(re.findall(r"`(\w+)`", table))
    assert set(Receipt.__slots__) | {"accepted"} <= named


def test_a_watcher_may_fall_so_far_behind():
    """The number is that of tests/bridge/control/test_handle.py."""
    assert "falls 1,024 events behind" in PAGE


def test_every_name_of_the_token_has_its_row():
    """The second column of the token's table has all that a token can do, and nothing else."""
    table = PAGE.partition("## The token")[2].partition("## Read a receipt")[0]
    column = re.findall(r"^\|[^|]*\| `(?:await )?(\w+)[`(]", table, re.MULTILINE)
    public = {name for name in vars(InterruptToken) if not name.startswith("_")}
    for_whoever_moves_a_run = {"notify_background", "refuse_background"}
    ours = public - {"is_forced"} - for_whoever_moves_a_run  # the first is told of elsewhere
    assert {name for name in column if name != "InterruptToken"} == ours
