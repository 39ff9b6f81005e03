import pytest

from signoff.app.option_descriptions import described


@pytest.mark.parametrize(
    ("effect", "question_id", "labels"),
    [
        ("!rounds#1", "rounds", ["continue", "stop"]),
        ("review#2/!limit#1", None, ["continue", "stop"]),
        ("!escalation#3", None, ["retry", "accept", "stop"]),
        ("loop", "not_converging", ["continue", "stop"]),
    ],
)
def test_every_option_of_the_engine_says_what_it_does(
    effect: str, question_id: str | None, labels: list[str]
) -> None:
    """A human who signs off must know what each button does."""
    options = described([{"label": each} for each in labels], effect, question_id)

    assert [each["label"] for each in options] == labels
    assert all(each["description"] for each in options)


def test_options_of_workflows_keep_their_own_words() -> None:
    """Only the author knows what `continue` means in their request."""
    own = [{"label": "continue"}, {"label": "stop", "description": "Wait for Monday."}]

    assert described(own, "ask", None) == own
    assert described(own, "!rounds#1", None)[1]["description"] == "Wait for Monday."
