"""What is accepted as an artifact."""

import pytest

from signoff.core.errors import AgentBadOutput
from signoff.review.flow.steps.authors import MOST_CHARACTERS, checked_artifact


@pytest.mark.parametrize(
    ("text", "artifact"),
    [
        ("The sea.", "The sea.\n"),
        ("The sea.\r\n", "The sea.\r\n"),
        ("\n  The sea.\n\n", "\n  The sea.\n\n"),
        ("e\u0301 \ufeff\x0c\u2028", "e\u0301 \ufeff\x0c\u2028\n"),
        ("\ud83d\ude00", "\U0001f600\n"),
        ("half \ud83d of it", "half \ufffd of it\n"),
    ],
)
def test_an_artifact_is_the_answer_as_far_as_a_file_can_contain_it(
    text: str, artifact: str
) -> None:
    """The final file could not be opened as text when a model had sent half a character."""
    assert checked_artifact(text) == artifact
    assert artifact.encode()


@pytest.mark.parametrize(("text", "repeats"), [("", 1), (" \r\n\t", 1), ("x", MOST_CHARACTERS + 1)])
def test_an_empty_or_enormous_answer_is_not_an_artifact(text: str, repeats: int) -> None:
    """Critics would be paid for reviewing it."""
    with pytest.raises(AgentBadOutput):
        checked_artifact(text * repeats)


def test_an_answer_with_a_removed_secret_is_not_an_artifact(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would be approved with a gap; the message names the file and the variable."""
    monkeypatch.setenv("MY_API_KEY", "zq-4711-very-secret")
    with pytest.raises(AgentBadOutput, match=r"artifact\.md contained the value of MY_API_KEY"):
        checked_artifact("The key is [hidden: MY_API_KEY].")
    assert checked_artifact("Secrets become [hidden: NAME].\n")
