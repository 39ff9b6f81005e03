from pathlib import Path

import pytest

from signoff.core.errors import InvalidWorkflow
from signoff.review.flow.reading import load_goal
from signoff.review.flow.sections import Goal
from signoff.review.pure.constraint import SourceBlock

GOALS = Path(__file__).parents[3] / "fixtures" / "goals"


def test_every_key_of_a_goal_is_read() -> None:
    """The author of the artifact gets everything in the file."""
    assert load_goal(GOALS / "every_key.yaml") == Goal(
        goal="A page about tea.\n",
        source=SourceBlock(
            ("notes.md",), ("docs/**/*.md",), ("tools/facts.sh",), "Tea is a drink."
        ),
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("goal.yaml", "A page about tea.\nWith two lines.\n"),
        ("goal.yaml", "- a page\n- about tea\n"),
        ("goal.md", "# Tea: a page\n\ngoal: not a key here\n"),
        ("goal.txt", "a: [\n"),
        ("GOAL", "Tea."),
    ],
)
def test_a_plain_text_is_the_whole_goal(tmp_path: Path, name: str, text: str) -> None:
    """Users who have a text do not have to learn keys."""
    (tmp_path / name).write_text(text)

    assert load_goal(tmp_path / name) == Goal(goal=text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gaol: Tea.\n", "did you mean 'goal'? valid: goal, source, version"),
        ("source: {inline: x}\n", "goal is missing"),
        ("goal: ''\n", "a text that says what to write"),
        ("goal: 5\n", "goal is 5"),
        ("goal: x\nsource: notes.md\n", ":2: source is 'notes.md' (files, globs, scripts or"),
        ("goal: x\nsource: {files: notes.md}\n", "a list of paths"),
        ("goal: x\nsource: {urls: []}\n", "valid: files, globs, scripts, inline"),
        ("version: 9\nwish: x\n", "version 9 is newer"),
        ("goal: [\n", "expected the node content"),
        ("  \n", "is empty"),
    ],
)
def test_an_invalid_goal_is_reported_with_what_is_valid(
    tmp_path: Path, text: str, words: str
) -> None:
    """A run without a goal would write something arbitrary."""
    (tmp_path / "goal.yaml").write_text(text)

    with pytest.raises(InvalidWorkflow) as caught:
        load_goal(tmp_path / "goal.yaml")

    assert words in str(caught.value)


def test_a_folder_contains_a_goal_as_yaml_or_as_text(tmp_path: Path) -> None:
    """`--goal FOLDER` finds it under its usual name."""
    with pytest.raises(InvalidWorkflow, match=r"contains no goal\.yaml and no goal\.md"):
        load_goal(tmp_path)

    (tmp_path / "goal.md").write_text("Tea.")
    assert load_goal(str(tmp_path)) == Goal(goal="Tea.")

    (tmp_path / "goal.yaml").write_text("goal: Coffee.\n")
    assert load_goal(tmp_path) == Goal(goal="Coffee.")
