"""A simulated caller that calls a real app, talks over it, records the call and checks it.

``rehearse()`` does all of it.  To build a harness of your own, use its parts: ``make_call()`` runs
a script against an open server, optionally in a noisy ``Room``; ``record()`` puts both sides of a
call on one clock; ``find_cut()``, ``find_answer()`` and ``find_ignored_sound()`` measure what a
line did; ``run_checks()`` judges the call, and ``draw()`` draws it.
"""

from ..audio.pcm import first_audible as first_audible
from ..audio.pcm import joined as joined
from ..audio.pcm import last_audible as last_audible
from ..audio.pcm import samples as samples
from ._checks import likeness as likeness
from ._checks import run_checks as run_checks
from ._checks import words as words
from ._decision_words import decision_in_words as decision_in_words
from ._ignored_sounds import find_ignored_sound as find_ignored_sound
from ._ignored_sounds import gaps_of as gaps_of
from ._ignored_sounds import held_in as held_in
from ._microphone import Microphone as Microphone
from ._microphone import Room as Room
from ._missing_library import RehearsalExtraError as RehearsalExtraError
from ._observer import Metric as Metric
from ._observer import Observer as Observer
from ._picture import draw as draw
from ._recorded_call import CallerActivity as CallerActivity
from ._recorded_call import make_call as make_call
from ._recording import RATE_HZ as RATE_HZ
from ._recording import Recording as Recording
from ._recording import record as record
from ._recording_measurements import CallNotes as CallNotes
from ._recording_measurements import ReceivedClear as ReceivedClear
from ._recording_measurements import find_answer as find_answer
from ._recording_measurements import find_cut as find_cut
from ._rehearsal_line import CallerInCall as CallerInCall
from ._rehearsal_line import RehearsalLine as RehearsalLine
from ._rehearsal_result import Check as Check
from ._rehearsal_result import Held as Held
from ._rehearsal_result import IgnoredSound as IgnoredSound
from ._rehearsal_result import LatencyParts as LatencyParts
from ._rehearsal_result import MeasuredAnswer as MeasuredAnswer
from ._rehearsal_result import MeasuredCut as MeasuredCut
from ._rehearsal_result import RecordedLine as RecordedLine
from ._rehearsal_result import Rehearsal as Rehearsal
from ._rehearsal_result import TurnDecision as TurnDecision
from ._rehearse import rehearse as rehearse
from ._script import Cue as Cue
from ._script import Perception as Perception
from ._script import ScriptLine as ScriptLine
from ._script import agent_falls_silent as agent_falls_silent
from ._script import agent_has_spoken as agent_has_spoken
from ._simulated_caller import SimulatedCaller as SimulatedCaller
from ._simulated_cough import cough as cough

__all__ = [
    "CallNotes",
    "CallerActivity",
    "CallerInCall",
    "Check",
    "Cue",
    "Held",
    "IgnoredSound",
    "LatencyParts",
    "MeasuredAnswer",
    "MeasuredCut",
    "Metric",
    "Microphone",
    "Observer",
    "Perception",
    "RATE_HZ",
    "ReceivedClear",
    "RecordedLine",
    "Recording",
    "Rehearsal",
    "RehearsalExtraError",
    "RehearsalLine",
    "Room",
    "ScriptLine",
    "SimulatedCaller",
    "TurnDecision",
    "agent_falls_silent",
    "agent_has_spoken",
    "cough",
    "decision_in_words",
    "draw",
    "find_answer",
    "find_cut",
    "find_ignored_sound",
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
