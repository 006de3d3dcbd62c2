"""Danish."""

from __future__ import annotations

from ._language import Language


class Danish(Language):
    tag = "da"

    abbreviations = "kl bl osv fx iflg vedr tlf"
    short_months = "jan feb mar apr maj jun jul aug sep okt nov dec"


LANGUAGE = Danish()
