"""What every provider has to pass: an ear, a voice, a model.

report = check_voice(make, can=FakeCartesiaVoice.faults)
"""

from ._check_ear import check_ear as check_ear
from ._check_llm import check_llm as check_llm
from ._check_options import CheckOptions as CheckOptions
from ._check_realtime import check_speech_to_speech as check_speech_to_speech
from ._check_report import CheckReport as CheckReport
from ._check_report import CheckResult as CheckResult
from ._check_report import ProviderCheckError as ProviderCheckError
from ._check_voice import check_voice as check_voice

__all__ = [
    "CheckOptions",
    "CheckReport",
    "CheckResult",
    "ProviderCheckError",
    "check_ear",
    "check_llm",
    "check_speech_to_speech",
    "check_voice",
]
