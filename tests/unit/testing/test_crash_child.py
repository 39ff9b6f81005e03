import subprocess
import sys

from tests.tables import table

PROGRAM = """
import atexit, sys, threading, time
from signoff.testing.crash_child import run_and_exit

atexit.register(print, "handler")

worked = threading.Event()

def work():
    threading.Thread(target=lambda: (worked.wait(), time.sleep(0.05), print("thread"))).start()
    print("work")
    worked.set()
    {end}

run_and_exit(work)
"""


@table(
    ("end", "code", "error"),
    [
        ("return None", 0, ""),
        ("return 3", 3, ""),
        ("sys.exit()", 0, ""),
        ("sys.exit(4)", 4, ""),
        ("sys.exit('why')", 1, "why"),
        ("raise ValueError('why')", 1, "ValueError: why"),
    ],
)
def test_a_process_ends_as_python_would_end_it(end: str, code: int, error: str) -> None:
    """Otherwise a test would pass although the real command loses output or hangs."""
    argv = [sys.executable, "-c", PROGRAM.format(end=end)]

    done = subprocess.run(argv, capture_output=True, text=True)

    assert done.stdout.split() == ["work", "thread", "handler"]
    assert done.returncode == code
    assert (done.stderr.splitlines() or [""])[-1] == error
