"""Swedish."""

from __future__ import annotations

from ._language import Language


class Swedish(Language):
    tag = "sv"

    abbreviations = "kl bl osv"


LANGUAGE = Swedish()
