"""Fallback providers: when one fails in a call, the next one takes over."""

from ._fallback import Fallback as Fallback

__all__ = ["Fallback"]
