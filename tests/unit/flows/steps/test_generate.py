"""What is taken for an artifact."""

import pytest

from signoff.errors import AgentBadOutput
from signoff.flows.steps.generate import MOST_CHARACTERS, checked_artifact


@pytest.mark.parametrize(
    ("said", "artifact"),
    [
        ("The sea.", "The sea.\n"),
        ("The sea.\r\n", "The sea.\r\n"),
        ("\n  The sea.\n\n", "\n  The sea.\n\n"),
        ("e\u0301 \ufeff\x0c\u2028", "e\u0301 \ufeff\x0c\u2028\n"),
        ("\ud83d\ude00", "\U0001f600\n"),
        ("half \ud83d of it", "half \ufffd of it\n"),
    ],
)
def test_an_artifact_is_what_was_said_as_far_as_a_file_can_hold_it(
    said: str, artifact: str
) -> None:
    """The final file could not be opened as text when a model had sent half a character."""
    assert checked_artifact(said) == artifact
    assert artifact.encode()


@pytest.mark.parametrize("said", ["", " \r\n\t", "x" * (MOST_CHARACTERS + 1)])
def test_nothing_and_far_too_much_are_no_artifact(said: str) -> None:
    """Critics would be paid for reading it."""
    with pytest.raises(AgentBadOutput):
        checked_artifact(said)


def test_an_artifact_that_a_secret_was_taken_out_of_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would be approved with a hole in it; the message names the file and the variable."""
    monkeypatch.setenv("MY_API_KEY", "zq-4711-very-secret")
    with pytest.raises(AgentBadOutput, match=r"artifact\.md contained the value of MY_API_KEY"):
        checked_artifact("The key is [hidden: MY_API_KEY].")
    assert checked_artifact("Secrets become [hidden: NAME].\n")
