"""Runs the command line as `python -m signoff`."""

import sys

from signoff.cli import main

if __name__ == "__main__":
    sys.exit(main())
