"""What tests of the bridge share."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def modules_of_users(tmp_path: Path) -> Iterator[None]:
    """Forget the modules of a user's folder afterwards: the next folder has others of that name."""
    yield
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]
