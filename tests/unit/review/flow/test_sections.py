from pathlib import Path

import pytest

from signoff._version import __version__
from signoff.core.errors import InvalidWorkflow, Problem
from signoff.core.severity import Severity
from signoff.documents.source_file import SourceFile
from signoff.review.flow.reading import read_flow
from signoff.review.flow.sections import (
    InlineConstraint,
    constraint_from_dict,
    inline_constraint,
    load_constraints,
    read_constraints,
)
from signoff.review.pure.constraint import Constraint, ConstraintBehavior, Rule, SourceBlock

CONSTRAINTS = Path(__file__).parents[3] / "fixtures" / "constraints"


def complaints(folder: Path) -> list[str]:
    with pytest.raises(InvalidWorkflow) as caught:
        load_constraints(folder)
    return [str(problem).removeprefix(f"{folder}/") for problem in caught.value.problems]


def test_every_key_of_a_constraint_is_read() -> None:
    """Critics get everything that is in the file."""
    (constraint,) = load_constraints(CONSTRAINTS / "every_key.yaml")

    assert constraint == Constraint(
        id="tone",
        priority=2,
        summary="The text is friendly.",
        rules=(
            Rule(
                "no-shouting",
                "Nothing is written in capitals.",
                Severity.LOW,
                "READ THIS!",
                "Please read this.",
            ),
            Rule("greets", "It greets the reader.", Severity.HIGH),
        ),
        agents=("claude", "gemini"),
        behavior=ConstraintBehavior.from_dict({"critical": "escalate", "low": "continue"}),
        script="tools/tone.sh",
        source=SourceBlock(("guide.md",), ("examples/*.md",), ("tools/words.sh",), "We say you."),
    )


def test_a_folder_is_read_in_the_order_of_names_and_a_list_in_its_own(tmp_path: Path) -> None:
    """A step may use the order of definition."""
    for name in ("b.yaml", "a.yml", "c.yaml"):
        (tmp_path / name).write_text("summary: x\n")
    (tmp_path / "notes.md").write_text("no constraint")
    (tmp_path / ".hidden.yaml").write_text("no constraint")

    assert [c.id for c in load_constraints(tmp_path)] == ["a", "b", "c"]
    assert [c.id for c in load_constraints([tmp_path / "c.yaml", tmp_path / "a.yml"])] == ["c", "a"]


def test_every_problem_of_every_file_is_reported_together(tmp_path: Path) -> None:
    """A run must not start with nine of ten constraints, nor report one file at a time."""
    files = {
        "a.yaml": "summary: fine\n",
        "b.yaml": "summary: [\n",
        "c.yaml": "- no mapping\n",
        "d.yaml": "agents: claude\npriority: high\nrules:\n  - id: x\n  - text: y\n",
        "e.yaml": "source: {files: [a]}\nsources: [b]\n",
        "f.yaml": "rules:\n  - {id: x, text: a}\n  - {id: x, text: b}\n",
        "g.yaml": "id: a\n",
        "h.yaml": "behavior: halt\nsumary: x\n",
        "i.yaml": "id: a b\n",
        "j.yaml": "version: 2\nfuture: 1\n",
        "k.yaml": "behavior: {severe: halt}\nrules: [{id: r, text: t, default_severity: BAD}]\n",
        "l.yaml": "",
        "m.yaml": "script: check 'this\n",
        "m n.yaml": "summary: x\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    lines = complaints(tmp_path)

    assert [line.split(" (")[0] for line in lines] == [
        "b.yaml:2: expected the node content, but found '<stream end>'",
        "c.yaml:1: is not a list of `key: value` fields",
        "d.yaml:1: agents is 'claude'",
        "d.yaml:2: priority is 'high'",
        "d.yaml:4: rules[0].text is missing",
        "d.yaml:5: rules[1].id is missing",
        "e.yaml:2: unknown key 'sources'",
        "f.yaml:3: rules[1].id is 'x', as is rules[0].id",
        f"g.yaml: the id 'a' is taken by {tmp_path}/a.yaml",
        "h.yaml:1: behavior is 'halt'",
        "h.yaml:2: unknown key 'sumary'",
        "i.yaml:1: id is 'a b'",
        f"j.yaml:1: version 2 is newer than signoff {__version__} can read",
        "k.yaml:1: unknown key 'severe'",
        "k.yaml:2: rules[0].default_severity is 'BAD'",
        "l.yaml:1: is empty",
        "m n.yaml: the file name 'm n' is not a valid id",
        "m.yaml:1: script is not a valid command: No closing quotation",
    ]


def test_a_constraint_without_requirements_is_a_warning(tmp_path: Path) -> None:
    """A critic could only guess what to look for."""
    (tmp_path / "a.yaml").write_text("priority: 1\n")
    warnings: list[Problem] = []

    read_constraints([tmp_path / "a.yaml"], [], warnings)

    assert "neither a summary nor rules" in str(warnings[0])


def test_a_constraint_survives_being_stored() -> None:
    """Runs store their constraints, and are explained by them later."""
    (constraint,) = load_constraints(CONSTRAINTS / "every_key.yaml")

    assert constraint_from_dict(constraint.to_json()) == constraint
    with pytest.raises(InvalidWorkflow, match="id is missing"):
        constraint_from_dict({"summary": "x"})
    with pytest.raises(InvalidWorkflow, match="unknown key 'x'"):
        constraint_from_dict({"id": "a", "x": 1})


def test_one_line_is_a_constraint_with_one_rule() -> None:
    """The shorthand is reviewed like any other constraint."""
    assert inline_constraint(
        "short", 3, InlineConstraint(summary="No sentence is long.")
    ) == Constraint("short", 3, "No sentence is long.", (Rule("short", "No sentence is long."),))


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
