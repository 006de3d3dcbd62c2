"""What is raised when a package of an extra is missing."""

from __future__ import annotations

import pytest

from bargein.nodes.speech._errors import need
from bargein.speech import SpeechError, SpeechExtraError


def test_a_missing_package_names_its_extra() -> None:
    """need raises an ImportError that says which extra to install."""
    with pytest.raises(ImportError, match=r'pip install "bargein\[local\]"') as caught:
        need("SmartTurn", "no_such_package", "local")
    assert isinstance(caught.value, SpeechExtraError)
    assert isinstance(caught.value, SpeechError)
    assert caught.value.extra == "local"


def test_a_package_that_is_there_is_returned() -> None:
    """need returns the module."""
    assert need("x", "json", "local").loads("1") == 1
