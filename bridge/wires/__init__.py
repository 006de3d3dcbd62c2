"""Wires: the ways of reaching a call, each behind the server's one port.

Write one by the protocol ``Wire``, pass it to ``open_server(app, wires=...)``, and let its tests
run ``check_wire``.
"""

from ..protocol._outbox import Outbox as Outbox
from ._server_limits import RateLimit as RateLimit
from ._signals import Signals as Signals
from ._wire import CallEnd as CallEnd
from ._wire import HostedCall as HostedCall
from ._wire import Identifies as Identifies
from ._wire import NewCall as NewCall
from ._wire import RequestRefusedError as RequestRefusedError
from ._wire import ResumePlace as ResumePlace
from ._wire import Resumes as Resumes
from ._wire import Session as Session
from ._wire import Wire as Wire
from ._wire import WireConnection as WireConnection
from .native import NativeWire as NativeWire

__all__ = [
    "CallEnd",
    "HostedCall",
    "Identifies",
    "NativeWire",
    "NewCall",
    "Outbox",
    "RateLimit",
    "RequestRefusedError",
    "ResumePlace",
    "Resumes",
    "Session",
    "Signals",
    "Wire",
    "WireConnection",
]
