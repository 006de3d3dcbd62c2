"""Child processes: starts, drives, watches and ends them.

Local voices, the local language model, tools and MCP servers use this package. Its names are not
public.
"""

from ._errors import ChildError as ChildError
from ._errors import EngineLoadError as EngineLoadError
from ._errors import JobError as JobError
from ._errors import PoolClosedError as PoolClosedError
from ._errors import ProcessLostError as ProcessLostError
from ._pool import Pool as Pool
from ._process import Process as Process
from ._process import start_process as start_process
from ._process_output import Captured as Captured
from ._process_output import Excerpt as Excerpt
from ._process_output import OnOutput as OnOutput
from ._process_output import Stream as Stream
from ._process_output import Tap as Tap
from ._settings import PoolSettings as PoolSettings
from ._terminal import TERM as TERM
from ._termination import DEFAULT_LADDER as DEFAULT_LADDER
from ._termination import SPARE_S as SPARE_S
from ._termination import Ladder as Ladder
from ._termination import StopReport as StopReport
from ._termination import never as never
from ._termination import stop_process as stop_process

__all__ = [
    "Captured",
    "ChildError",
    "DEFAULT_LADDER",
    "EngineLoadError",
    "Excerpt",
    "JobError",
    "Ladder",
    "OnOutput",
    "Pool",
    "PoolClosedError",
    "PoolSettings",
    "Process",
    "ProcessLostError",
    "SPARE_S",
    "StopReport",
    "Stream",
    "TERM",
    "Tap",
    "never",
    "start_process",
    "stop_process",
]
