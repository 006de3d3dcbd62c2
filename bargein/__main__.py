"""The command line: ``python -m bargein``, or ``bargein``."""

import sys

from bargein.bridge.cli._main import main

if __name__ == "__main__":
    sys.exit(main())
