import pytest

from signoff.app.doctor import Check, Examined
from signoff.cli.commands.doctor import verdict

BROKEN = Check("disk", ready=False, detail="full")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (Examined(()), "ready to run"),
        (Examined((), advice=("install one",)), "the engine is ready, but no model is: "),
        (Examined((BROKEN,)), "not ready: fix what is marked FAIL"),
        (Examined((BROKEN,), advice=("install one",)), "not ready: fix what is marked FAIL"),
    ],
)
def test_the_last_line_promises_no_more_than_there_is(found: Examined, said: str) -> None:
    """`ready to run` without any agent is followed by a run that fails."""
    assert verdict(found).startswith(said)
