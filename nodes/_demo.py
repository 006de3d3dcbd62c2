"""``python -m bargein demo``: runs the café of the examples."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path


def command(argv: Sequence[str]) -> int:
    """Run the café example: a simulated caller orders, talks over it, and checks the result.

    Args:
        argv: The arguments after ``demo``; ``--help`` lists them.

    Returns:
        The exit code: 0 when every check holds.
    """
    here = Path(__file__).resolve().parent  # resolves the symbolic link of a checkout
    # An installed wheel has the example inside the package, a checkout beside it.
    places = (here / "examples" / "cafe.py", here.parent / "examples" / "cafe.py")
    cafe = next((place for place in places if place.is_file()), None)
    if cafe is None:
        places_tried = " nor ".join(str(place) for place in places)
        sys.stderr.write(f"error: the example cafe.py is neither at {places_tried}\n")
        return 1
    try:
        code: int = runpy.run_path(str(cafe), run_name="cafe")["command"](argv)
    except ImportError as error:
        # An engine's error names only its own extra; the demo needs several.
        missing = str(error).partition(" Run: ")[0].rstrip(".")
        sys.stderr.write(f'error: {missing}. Run: pip install "bargein[demo]"\n')
        return 1
    return code
