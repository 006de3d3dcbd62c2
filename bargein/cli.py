"""The command line as functions: ``main()`` runs it, ``load_app()`` finds an app as it does."""

from .bridge.cli._command_runner import exit_code as exit_code
from .bridge.cli._logs import configure_logs as configure_logs
from .bridge.cli._main import main as main
from .bridge.cli._target import TargetError as TargetError
from .bridge.cli._target import load_app as load_app

__all__ = ["TargetError", "configure_logs", "exit_code", "load_app", "main"]
