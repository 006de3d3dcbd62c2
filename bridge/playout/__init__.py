"""Playout: the audio sent to the caller's loudspeaker, how far it was heard, holds and resends."""
