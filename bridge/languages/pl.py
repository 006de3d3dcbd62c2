"""Polish."""

from __future__ import annotations

from ._language import Language


class Polish(Language):
    tag = "pl"

    abbreviations = "np itd itp tzn tj ul hab inż"


LANGUAGE = Polish()
