"""A simulated caller that calls a real app, talks over it, records the call and checks it.

``rehearse()`` does all of it.  To build a harness of your own, use its parts: ``make_call()`` runs
a script against an open server, optionally in a noisy ``Room``; ``record()`` puts both sides of a
call on one clock; ``find_cut()``, ``find_answer()`` and ``find_aside()`` measure what a line did;
``run_checks()`` judges the call, and ``draw()`` draws it.
"""

from ._checks import likeness as likeness
from ._checks import run_checks as run_checks
from ._checks import words as words
from ._cough import cough as cough
from ._ignored_sounds import find_aside as find_aside
from ._ignored_sounds import gaps_of as gaps_of
from ._ignored_sounds import held_in as held_in
from ._microphone import Microphone as Microphone
from ._microphone import Room as Room
from ._missing_library import RehearsalExtraError as RehearsalExtraError
from ._observer import Metric as Metric
from ._observer import Observer as Observer
from ._pcm import first_audible as first_audible
from ._pcm import joined as joined
from ._pcm import last_audible as last_audible
from ._pcm import samples as samples
from ._picture import draw as draw
from ._recorded_call import Beside as Beside
from ._recorded_call import make_call as make_call
from ._recording import RATE_HZ as RATE_HZ
from ._recording import Recording as Recording
from ._recording import record as record
from ._recording_measurements import Fence as Fence
from ._recording_measurements import Notes as Notes
from ._recording_measurements import find_answer as find_answer
from ._recording_measurements import find_cut as find_cut
from ._rehearse import rehearse as rehearse
from ._report import decision_in_words as decision_in_words
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
from ._simulated_caller import Conversation as Conversation

__all__ = [
    "Answer",
    "Aside",
    "Beside",
    "Check",
    "Conversation",
    "Cue",
    "Cut",
    "Decision",
    "Fence",
    "Held",
    "Line",
    "Metric",
    "Microphone",
    "Notes",
    "Observer",
    "Parts",
    "Perception",
    "RATE_HZ",
    "Recording",
    "Rehearsal",
    "RehearsalExtraError",
    "Room",
    "Said",
    "agent_falls_silent",
    "agent_has_spoken",
    "cough",
    "decision_in_words",
    "draw",
    "find_answer",
    "find_aside",
    "find_cut",
    "first_audible",
    "gaps_of",
    "held_in",
    "joined",
    "last_audible",
    "likeness",
    "make_call",
    "record",
    "rehearse",
    "run_checks",
    "samples",
    "words",
]
