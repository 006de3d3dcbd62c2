"""Tests of what a rehearsal found."""

from array import array

from bargein.rehearsal import Check, Recording, Rehearsal


def test_a_rehearsal_is_well_when_every_check_holds() -> None:
    """One check that fails is enough; added checks come behind those that are there."""
    made = Rehearsal(
        recording=Recording(0, 1, array("h"), array("h"), ()),
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
