"""Norwegian."""

from __future__ import annotations

from ._language import Language


class Norwegian(Language):
    tag = "nb"

    abbreviations = "kl bl osv vedr tlf"


LANGUAGE = Norwegian()
