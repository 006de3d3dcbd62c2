"""Rime: a voice that reports the times of its words."""

from ._voice import RimeVoice as RimeVoice

__all__ = ["RimeVoice"]
