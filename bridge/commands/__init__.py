"""What the command line and the console share: targets, option values, logs."""

from ._logs import configure_logs as configure_logs
from ._output import complain as complain
from ._target import TargetError as TargetError
from ._target import load_app as load_app

__all__ = ["TargetError", "complain", "configure_logs", "load_app"]
