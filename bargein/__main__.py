"""The command line: ``python -m bargein``, or ``bargein``."""

import sys


def main() -> int:
    """Run the command line of the process; Ctrl+C while it loads is one line, too."""
    from bargein.cli import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
