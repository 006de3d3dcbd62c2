"""Child processes: started, talked to, watched and ended in one place.

Voices, the local language model, tools and MCP servers all run on what is here.  Its names are not
public.
"""

from ._capture import Excerpt as Excerpt
from ._capture import OnOutput as OnOutput
from ._capture import Stream as Stream
from ._capture import Tap as Tap
from ._errors import ChildError as ChildError
from ._errors import EngineLoadError as EngineLoadError
from ._errors import JobError as JobError
from ._errors import PoolClosedError as PoolClosedError
from ._errors import ProcessLostError as ProcessLostError
from ._ladder import DEFAULT_LADDER as DEFAULT_LADDER
from ._ladder import SPARE_S as SPARE_S
from ._ladder import Ladder as Ladder
from ._ladder import StopReport as StopReport
from ._ladder import interrupt_younger as interrupt_younger
from ._ladder import never as never
from ._ladder import stop_process as stop_process
from ._ladder import stop_younger as stop_younger
from ._pool import Pool as Pool
from ._pool import PoolSettings as PoolSettings
from ._process import Process as Process
from ._process import start_process as start_process
from ._process import worker_command as worker_command
from ._session import boot_clock_s as boot_clock_s
from ._terminal import TERM as TERM
from ._terminal import open_terminal as open_terminal

__all__ = [
    "DEFAULT_LADDER",
    "SPARE_S",
    "TERM",
    "ChildError",
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
    "StopReport",
    "Stream",
    "Tap",
    "boot_clock_s",
    "interrupt_younger",
    "never",
    "open_terminal",
    "start_process",
    "stop_process",
    "stop_younger",
    "worker_command",
]
