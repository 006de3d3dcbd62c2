"""Wires whose far side hears and speaks, so that only text travels: what they share."""

from ._text_events import SwitchLanguage as SwitchLanguage

__all__ = ["SwitchLanguage"]
