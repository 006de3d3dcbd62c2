"""A simulated caller that rings a real app, talks over it, records the call and checks it."""

from ._checks import likeness as likeness
from ._checks import words as words
from ._cough import cough as cough
from ._extra import RehearsalExtraError as RehearsalExtraError
from ._recording import Recording as Recording
from ._rehearse import rehearse as rehearse
from ._result import Answer as Answer
from ._result import Aside as Aside
from ._result import Check as Check
from ._result import Cut as Cut
from ._result import Decision as Decision
from ._result import Held as Held
from ._result import Parts as Parts
from ._result import Rehearsal as Rehearsal
from ._result import Said as Said
from ._script import Cue as Cue
from ._script import Line as Line
from ._script import Perception as Perception
from ._script import agent_falls_silent as agent_falls_silent
from ._script import agent_has_spoken as agent_has_spoken
from ._sound import joined as joined

__all__ = [
    "Answer",
    "Aside",
    "Check",
    "Cue",
    "Cut",
    "Decision",
    "Held",
    "Line",
    "Parts",
    "Perception",
    "Recording",
    "Rehearsal",
    "RehearsalExtraError",
    "Said",
    "agent_falls_silent",
    "agent_has_spoken",
    "cough",
    "joined",
    "likeness",
    "rehearse",
    "words",
]
