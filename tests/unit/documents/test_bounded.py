"""Tests of evaluating conditions and patterns under a hard time limit."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from signoff.documents import bounded
from signoff.documents.bounded import EvaluationFailed, OutOfBounds

CATASTROPHIC = "^(a+)+$"
LONG = "a" * 60 + "!"


def test_an_expression_that_needs_all_memory_is_stopped() -> None:
    """The machine must not start to swap because of a condition."""
    with pytest.raises(OutOfBounds):
        bounded.evaluate("['" + "a" * 1000 + "']" + ".map(x, x + x)" * 40, {}, linear=False)


@pytest.mark.parametrize("linear", [True, False])
def test_an_error_comes_back_with_its_kind(linear: bool) -> None:
    """The author sees what is wrong, whichever process evaluated the expression."""
    with pytest.raises(EvaluationFailed) as caught:
        bounded.evaluate("1 / 0 == 1", {}, linear=linear)

    assert caught.value.kind == "ZeroDivisionError"


def test_a_schema_with_a_catastrophic_pattern_does_not_hang(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Schemas come from workflow files, and the checked value comes from a model."""
    schema = {"properties": {"x": {"pattern": CATASTROPHIC}}}

    with monkeypatch.context() as patched:
        patched.setattr(bounded, "SECONDS", 0.4)
        with pytest.raises(OutOfBounds):
            bounded.schema_errors({"x": LONG}, schema)

    assert bounded.schema_errors({"x": "b"}, schema) == [(["x"], "'b' does not match '^(a+)+$'")]


def test_the_child_gets_no_secret_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child evaluates expressions that other people wrote."""
    monkeypatch.setenv("SIGNOFF_TEST_KEY", "secret")
    with pytest.raises(OutOfBounds):
        bounded.schema_errors(LONG, {"pattern": CATASTROPHIC})
    # The killed child is started again, from an environment that has the key.
    bounded.schema_errors("a", {"pattern": "a"})

    children = Path(f"/proc/self/task/{os.getpid()}/children")
    if not children.exists():
        pytest.skip("this system has no /proc")
    environments = [
        Path(f"/proc/{pid}/environ").read_bytes() for pid in children.read_text().split()
    ]
    assert not any(b"SIGNOFF_TEST_KEY" in environment for environment in environments)


LEAVES_A_CHILD = """
import atexit, psutil
# Called last, because it is registered first.
atexit.register(lambda: print(psutil.Process().children()))
from signoff.documents import bounded
assert not bounded.schema_errors("abba", {"pattern": "b+"})
"""


def test_a_process_ends_its_child_when_it_exits() -> None:
    """Python warns about one that is still running; with warnings as errors it looks broken."""
    argv = [sys.executable, "-c", LEAVES_A_CHILD]

    ended = subprocess.run(argv, capture_output=True, text=True)

    assert (ended.stdout, ended.stderr) == ("[]\n", "")
