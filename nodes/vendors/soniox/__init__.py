"""Soniox: an ear whose model decides when a turn is over."""

from ._ear import SonioxEar as SonioxEar

__all__ = ["SonioxEar"]
