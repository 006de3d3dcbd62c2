"""The verbs, a file each, which has all that differs between them.

``Verb`` in ``bridge/_verbs.py`` lists them in the order of their strength, and each name there is
that of a file here.
"""

from __future__ import annotations

from importlib import import_module

from ..._verbs import VERBS, Verb
from ._verb_row import VerbRow

ROWS: dict[Verb, VerbRow] = {
    verb: import_module(f"{__name__}.{verb}").ROW for verb in VERBS
}  # fmt: skip
"""The row of each verb, the weakest first."""
