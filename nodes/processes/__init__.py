"""Child processes: starts, drives, watches and ends them.

Local voices, the local language model, tools and MCP servers use this package, and so can engines
of your own.
"""

from ._errors import ChildError as ChildError
from ._errors import EngineLoadError as EngineLoadError
from ._errors import JobError as JobError
from ._errors import PoolClosedError as PoolClosedError
from ._errors import ProcessLostError as ProcessLostError
from ._pool import Pool as Pool
from ._process_output import OnOutput as OnOutput
from ._process_output import OutputStream as OutputStream
from ._termination import SignalLadder as SignalLadder
from ._termination import StopReport as StopReport
from ._termination import stop_process as stop_process
from ._worker import PoolSettings as PoolSettings

__all__ = [
    "ChildError",
    "EngineLoadError",
    "JobError",
    "Pool",
    "PoolClosedError",
    "PoolSettings",
    "ProcessLostError",
    "SignalLadder",
    "StopReport",
    "stop_process",
]
