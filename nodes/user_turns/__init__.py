"""Decides when the caller's turn begins and ends, and what interrupts the agent.

``TurnTaking().attach(call)`` makes turns out of what the ears of a call hear; see docs/turns.md.
"""

from bargein.bridge.languages import LanguagePack

from ._barge_in import BargeIn, HoldThenDecide
from ._endpointing import (
    DynamicEndpointing,
    EarEndpointing,
    EarliestEndpointing,
    Endpointing,
    FixedEndpointing,
    ModelEndpointing,
    Pause,
    SurestEndpointing,
)
from ._settings import TurnSettings
from ._settings_overlays import ChangeTurns, Overlay, when
from ._sound_verdict import AgentView, Hint, Sound, Verdict
from ._turn_start import StartOnVoice, StartOnWords, TurnStart, WakePhrase
from ._turn_taking import TurnTaking

__all__ = [
    "AgentView",
    "BargeIn",
    "ChangeTurns",
    "DynamicEndpointing",
    "EarEndpointing",
    "EarliestEndpointing",
    "Endpointing",
    "FixedEndpointing",
    "Hint",
    "HoldThenDecide",
    "LanguagePack",
    "ModelEndpointing",
    "Overlay",
    "Pause",
    "Sound",
    "StartOnVoice",
    "StartOnWords",
    "SurestEndpointing",
    "TurnSettings",
    "TurnStart",
    "TurnTaking",
    "Verdict",
    "WakePhrase",
    "when",
]
