"""People who begin to read or say a word, as microphones in rooms hear them: no backchannels.

python -m tests.training.people CHECKOUTS FOLDER    # needs soundfile, 1.2 or newer
"""

from __future__ import annotations

import random
import sys
import zlib
from pathlib import Path

import numpy as np

from bargein.nodes.speech._backchannel import LOOKED_AT
from bargein.speech import SileroModel

from .backchannels import EARLIER, HINT_WINDOWS, LATER, PEOPLE, WINDOW
from .throat_sounds import Voice, as_heard, recordings, speaker_of, stretches

TIMES = {"reader": 3, "word": 1}
"""How often each recording is heard, each time in another way."""

MOST = 8
"""How many beginnings of each time count."""


def make_sounds(checkouts: Path, folder: Path) -> None:
    """Keep what is heard around the beginnings of speech in all recordings."""
    model = SileroModel()
    sounds, who = [], []
    for kind in TIMES:
        for path, recording in recordings(checkouts, kind):
            rng = random.Random(zlib.crc32(f"assent{kind}{path.name}".encode()))
            for _ in range(TIMES[kind]):
                heard = as_heard(recording, rng)
                for onset, end in stretches(Voice(heard, model))[:MOST]:
                    stop = onset + HINT_WINDOWS * WINDOW
                    piece = heard[stop - LOOKED_AT - EARLIER : stop + LATER * WINDOW]
                    if end >= stop and len(piece) == LOOKED_AT + EARLIER + LATER * WINDOW:
                        sounds.append(piece)
                        who.append(speaker_of(kind, path))
        print(kind, len(sounds), flush=True)
    np.savez_compressed(folder / PEOPLE, sounds=np.stack(sounds), who=np.array(who))


if __name__ == "__main__":
    make_sounds(Path(sys.argv[1]), Path(sys.argv[2]))
