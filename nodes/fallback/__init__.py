"""Several providers for one thing: the next one takes over when one fails, in mid-call."""

from ._fallback import Fallback as Fallback

__all__ = ["Fallback"]
