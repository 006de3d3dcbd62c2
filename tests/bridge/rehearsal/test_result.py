"""Tests of what a rehearsal found."""

from bargein.bridge.rehearsal._recording import record
from bargein.rehearsal import Check, Rehearsal


def test_a_rehearsal_is_well_when_every_check_holds() -> None:
    """One check that fails is enough; added checks come behind those that are there."""
    made = Rehearsal(
        recording=record(start_s=0, end_s=1, spoke=b"", spoke_at_s=0, heard=[]),
        said=(),
        cuts=(),
        answers=(),
        history=[],
        ended="hangup",
    )
    good = made.with_checks([Check("a", True)])
    bad = good.with_checks([Check("b", False)])
    assert (good.ok, bad.ok) == (True, False)
    assert [check.name for check in bad.checks] == ["a", "b"]
