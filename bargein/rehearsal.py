"""A simulated caller that calls an app, talks over it, records the call and checks it."""

import bargein.bridge.rehearsal as _bridge_rehearsal

from .bridge.rehearsal import *

__all__: list[str] = []
__all__ += _bridge_rehearsal.__all__
