"""The command line: ``python -m bargein``, or ``bargein``."""

import sys


def main() -> int:
    """Run the command line of the process; Ctrl+C while it loads is one line, too."""
    try:
        from bargein.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130
    return run()


if __name__ == "__main__":
    sys.exit(main())
