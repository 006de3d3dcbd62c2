"""Hearing and speaking offline: engines behind small protocols."""

from ._backchannel import BackchannelDetector as BackchannelDetector
from ._clauses import ClauseSplitter as ClauseSplitter
from ._clauses import clauses as clauses
from ._ear import Ear as Ear
from ._ear import ListeningSettings as ListeningSettings
from ._ear import SilenceOnly as SilenceOnly
from ._echo_detector import EchoDetector as EchoDetector
from ._end_of_turn_model import SmartTurn as SmartTurn
from ._errors import SpeechEngineError as SpeechEngineError
from ._errors import SpeechError as SpeechError
from ._errors import SpeechExtraError as SpeechExtraError
from ._errors import SpeechNotOpenError as SpeechNotOpenError
from ._errors import SpeechWorkerError as SpeechWorkerError
from ._local_speech import LocalSpeech as LocalSpeech
from ._playback_reference import HeardAgent as HeardAgent
from ._protocols import EchoProbability as EchoProbability
from ._protocols import EndOfTurn as EndOfTurn
from ._protocols import SoundOfVoice as SoundOfVoice
from ._protocols import SpeechPiece as SpeechPiece
from ._protocols import SpeechToText as SpeechToText
from ._protocols import TextToSpeech as TextToSpeech
from ._protocols import Transcript as Transcript
from ._protocols import VoiceActivity as VoiceActivity
from ._resample import Resampler as Resampler
from ._resample import resample as resample
from ._stt_whisper import WhisperTiny as WhisperTiny
from ._tts_espeak import EspeakVoice as EspeakVoice
from ._tts_node import Mouth as Mouth
from ._tts_piper import PiperVoice as PiperVoice
from ._vad import SileroModel as SileroModel
from ._vad import SileroVAD as SileroVAD
from ._worker import WorkerPool as WorkerPool
from ._worker import WorkerSettings as WorkerSettings

__all__ = [
    "BackchannelDetector",
    "ClauseSplitter",
    "Ear",
    "EchoDetector",
    "EchoProbability",
    "EndOfTurn",
    "EspeakVoice",
    "HeardAgent",
    "ListeningSettings",
    "LocalSpeech",
    "Mouth",
    "PiperVoice",
    "Resampler",
    "SilenceOnly",
    "SileroModel",
    "SileroVAD",
    "SmartTurn",
    "SoundOfVoice",
    "SpeechEngineError",
    "SpeechError",
    "SpeechExtraError",
    "SpeechNotOpenError",
    "SpeechPiece",
    "SpeechToText",
    "SpeechWorkerError",
    "TextToSpeech",
    "Transcript",
    "VoiceActivity",
    "WhisperTiny",
    "WorkerPool",
    "WorkerSettings",
    "clauses",
    "resample",
]
