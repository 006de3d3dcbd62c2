"""The language packs that settings may name, a language a file."""

from __future__ import annotations

from .chinese import CHINESE
from .english import ENGLISH
from .french import FRENCH
from .german import GERMAN
from .japanese import JAPANESE
from .spanish import SPANISH

PACKS = {pack.name: pack for pack in (ENGLISH, GERMAN, FRENCH, SPANISH, CHINESE, JAPANESE)}
"""The packs that settings may name."""
