"""A simulated caller that talks over an agent, records the call and checks it."""

from .bridge import rehearsal as _bridge_rehearsal
from .bridge.rehearsal import *

__all__: list[str] = []
__all__ += _bridge_rehearsal.__all__
