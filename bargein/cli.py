"""The command line, for programs that run it or load an app as it does."""

from .bridge.cli._logs import configure_logs as configure_logs
from .bridge.cli._main import main as main
from .bridge.cli._target import TargetError as TargetError
from .bridge.cli._target import load_app as load_app

__all__ = ["TargetError", "configure_logs", "load_app", "main"]
