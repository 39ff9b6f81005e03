"""Runs the command line as `python -m signoff`."""

import os
import sys


def _run() -> int:
    # Python puts the current folder in front of the import path; it may be a project to review.
    # `pathlib` could be a file of that project, too.
    if not sys.flags.safe_path and sys.path[0] in ("", os.getcwd()):  # noqa: PTH109
        del sys.path[0]
    from signoff.surfaces.cli import main

    return main()


if __name__ == "__main__":
    sys.exit(_run())
