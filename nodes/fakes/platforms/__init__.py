"""What fakes of platforms share that hear and speak, and ask an agent for words."""

from ._far_voice import FarVoice as FarVoice
from ._plain_http import HttpRefusedError as HttpRefusedError
from ._plain_http import request_json as request_json

__all__ = ["HttpRefusedError"]
