"""Platforms that hear and speak, and ask an agent of yours for words: ``wires=[LineWire()]``."""

from .bridge.wires.harness import *
from .bridge.wires.harness import __all__ as __all__
