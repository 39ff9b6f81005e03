from pathlib import Path

import pytest

from signoff.documents.source_file import SourceFile
from signoff.errors import InvalidWorkflow
from signoff.flows.reading import read_flow
from signoff.review.constraint import Constraint


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose flow is in a folder of its own."""
    for name in (".signoff/constraints/home", "rules/b", "rules/a", "flows/near/own", "extra"):
        path = tmp_path / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"summary: {path.stem}\n")
    return tmp_path


def read(project: Path, constraints: str) -> tuple[Constraint, ...]:
    flow = project / "flows" / "flow.yaml"
    flow.write_text(f"workflow: [{{step: generate}}]\nconstraints: {constraints}\n")
    return read_flow(SourceFile(flow), root=project, home=project / ".signoff").constraints


def ids(project: Path, constraints: str) -> list[str]:
    return [constraint.id for constraint in read(project, constraints)]


@pytest.mark.parametrize(
    ("constraints", "found"),
    [
        ("", "home"),
        ("{inline: {short: It is short.}}", "short"),
        ("{dir: rules}", "a b"),
        ("{files: [extra.yaml]}", "extra"),
        ("{dir: rules, files: [extra.yaml, rules/b.yaml, ./extra.yaml]}", "extra b a"),
        ("{dir: rules, inline: {short: It is short.}}", "a b short"),
        ("{dir: near}", "own"),
        ("{files: [near/own.yaml]}", "own"),
        ("{dir: flows/near}", "own"),
    ],
)
def test_files_come_first_then_the_folder_then_the_lines(
    project: Path, constraints: str, found: str
) -> None:
    """The order of definition is what the author sees, from the root or next to the flow."""
    assert ids(project, constraints) == found.split()


def test_lines_get_their_priorities_in_order(project: Path) -> None:
    """The first line has the highest priority."""
    inline = read(project, "{dir: rules, inline: {x: One., y: Two.}}")[2:]

    assert [(each.id, each.priority) for each in inline] == [("x", 1), ("y", 2)]


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        ("{dir: nowhere}", "flow.yaml:2: constraints.dir is 'nowhere', but there is no such"),
        ("{dir: extra.yaml}", "there is no such folder"),
        ("{files: [nothing.yaml]}", "constraints.files[0] is 'nothing.yaml', but there is no"),
        ("{files: [rules]}", "there is no such file"),
        ("{dir: rules, inline: {a: Taken.}}", "the id 'a' is taken by a constraint file"),
        ("{inline: {a b: Not an id.}}", "constraints.inline has the id 'a b'"),
    ],
)
def test_everything_that_is_named_has_to_exist(project: Path, constraints: str, words: str) -> None:
    """A typo must not disable a review."""
    with pytest.raises(InvalidWorkflow) as caught:
        read(project, constraints)

    assert words in str(caught.value)


def test_a_project_without_constraints_is_a_warning(project: Path) -> None:
    """It may be intended, but nothing is reviewed."""
    flow = project / "flow.yaml"
    flow.write_text("workflow: [{step: generate}]\n")

    read_result = read_flow(SourceFile(flow), root=project, home=project / "elsewhere")

    assert read_result.constraints == ()
    assert any("there are no constraints" in warning for warning in read_result.warnings)
