"""What the ear shows a detector of a sound that has just begun."""

from __future__ import annotations

from bargein.speech import ListeningSettings, SileroModel, SoundOfVoice

FRAME = 1024


def around_look(pcm: bytes, sound: SoundOfVoice, samples: int) -> bytes:
    """Return the last samples before the time at which the detector is asked."""
    vad, voiced, settings = SileroModel().new_call(), 0, ListeningSettings()
    for start in range(0, len(pcm) - FRAME + 1, FRAME):
        probability = vad.probability(pcm[start : start + FRAME])
        voiced = voiced + 1 if probability >= settings.speech_above else 0
        if voiced == settings.onset_windows:
            stop = start + FRAME * (1 + round(sound.after_s / 0.032))
            return pcm[max(0, stop - 2 * samples) : stop]
    raise AssertionError("nobody heard a voice")
