"""Russian."""

# ruff: noqa: RUF001 (this module has Cyrillic words)

from __future__ import annotations

from ._language import Language


class Russian(Language):
    tag = "ru"

    abbreviations = "г ул руб тыс млн млрд стр др пр им"


LANGUAGE = Russian()
