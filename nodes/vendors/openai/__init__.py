"""OpenAI and servers with its API: whole utterances to text."""

from ._transcription import TranscriptionService as TranscriptionService

__all__ = ["TranscriptionService"]
