"""The page of numbers says what the code says."""

from __future__ import annotations

import pytest

from docs.scripts import number_reference

pytestmark = pytest.mark.gate


def test_the_page_of_numbers_is_up_to_date() -> None:
    """The page has each setting and constant with its file, default and unit."""
    page = number_reference.PAGE.read_text()
    assert page == number_reference.reference(), "run: python -m docs.scripts.number_reference"


def test_the_numbers_that_people_look_for_are_found() -> None:
    """The page of numbers has the settings of turns and of the server, and measured constants."""
    settings = [one for ones in number_reference.settings().values() for one in ones]
    places = {(one.owner, one.name): one for one in settings}
    assert places["TurnSettings", "min_duration_s"].default == 0.8
    assert places["Limits", "max_calls"].file == "bridge/wires/_server_limits.py"
    assert places["ModelEndpointing", "longest_pause_s"].meaning
    constants = [one for ones in number_reference.constants().values() for one in ones]
    assert {"COMMIT_S", "SINK_OVERFLOW", "GOODBYE_S"} <= {one.name for one in constants}
    assert len(constants) > 200
