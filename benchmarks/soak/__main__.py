"""`python -m benchmarks.soak`: kills at random, then checks that nothing was lost or repeated."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.soak.soak import Soak, SoakOptions

_ENDING = (signal.SIGINT, signal.SIGTERM)


def main() -> int:
    """Runs one soak and prints what it has shown; 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="how many (50)")
    parser.add_argument("--seconds", type=float, default=120, help="stop killing after that (120)")
    parser.add_argument("--seed", type=int, default=1, help="of the kinds and times (1)")
    parser.add_argument("--dispatch", choices=("store", "temporal"), default="store")
    parser.add_argument("--call-seconds", type=float, default=1.5, help="the longest call (1.5)")
    parser.add_argument(
        "--keep", action="store_true", help="keep the servers running after a broken promise"
    )
    given = parser.parse_args()
    options = SoakOptions(
        given.kills,
        given.seconds,
        given.seed,
        given.dispatch,
        longest_call_seconds=given.call_seconds,
    )
    with TemporaryDirectory() as folder, Soak(Path(folder), options, _say) as soak:
        report = soak.run()
        print(report.text(), flush=True)
        if given.keep and report.judgment.broken:
            # Rows and logs show the cause, and are gone once the servers are.
            _say(f"inspect {soak.database} and {folder}, then press Ctrl-C")
            # Blocked first: a shell ignores Ctrl-C for what runs in the background.
            signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
            signal.sigwait(_ENDING)
    return 1 if report.judgment.broken else 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
