"""Which branch of a contract is the one that loops, and what happens at its limit."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from signoff.contracts import StepContext, define_workflow
from signoff.contracts.compile import describe_modules, param_names, plan
from signoff.contracts.model import Condition, ConditionalNext, WorkflowDefinition, WorkflowStep
from signoff.core.outcome import Status
from signoff.core.step import Edge
from signoff.core.workflow import Workflow
from signoff.documents.python_files import import_file, import_loose
from signoff.runtime.engine import Engine
from signoff.store.sqlite import MemoryStore


def bounds(workflow: Workflow, step: str) -> dict[str, int | None]:
    """Returns the bound of each edge of a step, by its target."""
    edges = [edge for edge in workflow.steps[step].next.values() if isinstance(edge, Edge)]
    return {str(edge.to): edge.bound for edge in edges}


def does(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "command": lambda _ctx: {}, **more}


def branch(on_true: str, on_false: str) -> dict[str, Any]:
    return {"condition": "result.more", "onTrue": on_true, "onFalse": on_false, "maxIterations": 3}


@pytest.mark.parametrize(
    ("on_true", "on_false"), [("fix", "end"), ("end", "fix"), ("check", "end"), ("end", "check")]
)
def test_the_branch_that_leads_back_is_counted(on_true: str, on_false: str) -> None:
    """A loop over a later step is a loop too, on either branch."""
    workflow = define_workflow(
        {
            "type": "loop",
            "steps": [
                does("check", next=branch(on_true, on_false)),
                does("fix", next="check" if "fix" in (on_true, on_false) else "end"),
                does("end"),
            ][:: 1 if "fix" in (on_true, on_false) else 2],
        }
    )

    looping = on_false if on_true == "end" else on_true

    assert bounds(workflow, "check") == {looping: 3, "end": None}


def test_steps_that_run_together_loop_by_any_of_their_names() -> None:
    """The second of them comes later in the file, but it is the same node."""
    workflow = define_workflow(
        {
            "type": "loop",
            "steps": [
                does("style", parallel=True),
                does("facts", parallel=True, next=branch("facts", "end")),
                does("end"),
            ],
        }
    )

    assert bounds(workflow, "style+facts") == {"style+facts": 3, "end": None}


async def test_a_loop_without_a_limit_ends_with_a_human_decision_too() -> None:
    """Twenty rounds of work are not lost because the author set no limit."""
    rounds: list[int] = []

    def again(_ctx: StepContext) -> dict[str, bool]:
        rounds.append(1)
        return {"more": True}

    workflow = define_workflow(
        {
            "type": "loop",
            "steps": [
                {
                    "name": "check",
                    "command": again,
                    "next": branch("fix", "end") | {"maxIterations": 99},
                },
                does("fix", next="check"),
                does("end"),
            ],
        }
    )

    async with Engine(MemoryStore()) as engine:
        result = await engine.start(workflow, {}, name="run")

    assert result.status is Status.WAITING
    assert len(rounds) == 21


# The digest of a definition covers the modules of the project that its conditions use.


FILES = {
    "shop/__init__.py": "from .rules import price_limit\n",
    "shop/rules.py": (
        "import shop.numbers as numbers\n"
        "from .words import *\n"
        "def price_limit():\n    return numbers.LIMIT\n"
    ),
    "shop/numbers.py": "LIMIT = 20\n",
    "shop/words.py": "def plural(text):\n    return text + 's'\n",
    "shop/late.py": "def check(result):\n    return bool(result)\n",
    "shop/unused.py": "from . import rules\n",
    "conditions.py": (
        "import json\n"
        "import pytest\n"
        "import shop\n"
        "def helper():\n    return 1\n"
        "def cheap(ctx):\n"
        "    from shop.late import check\n"
        "    return check(ctx.result) and ctx.result < shop.price_limit()\n"
    ),
}


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Any]]:
    """Returns the conditions of a project as a new process would import them."""
    monkeypatch.syspath_prepend(str(tmp_path))
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)

    def forget() -> None:
        for name in [name for name in sys.modules if name.partition(".")[0] == "shop"]:
            del sys.modules[name]

    def fresh() -> Any:
        forget()
        return import_loose(tmp_path / "conditions.py")

    yield fresh
    forget()


def names(function: Any) -> list[str]:
    return [name for name, _ in describe_modules([function])]


def test_every_module_of_the_project_that_is_imported_is_found(load: Callable[[], Any]) -> None:
    """However a helper is reached, a worker could weaken it."""
    imported = ["__init__.py", "conditions.py", "late.py", "numbers.py", "rules.py", "words.py"]

    assert names(load().cheap) == imported


@pytest.mark.parametrize(
    ("path", "old", "new", "changes"),
    [
        ("shop/numbers.py", "20", "99", True),
        ("shop/words.py", "'s'", "'es'", True),
        ("shop/late.py", "bool(result)", "True", True),
        ("conditions.py", "return 1", "return 2", True),
        ("shop/unused.py", "rules", "words", False),
        ("shop/numbers.py", "LIMIT", "# what it may cost\nLIMIT", False),
    ],
)
def test_the_digest_changes_with_the_modules_that_conditions_use(
    tmp_path: Path, load: Callable[[], Any], path: str, old: str, new: str, changes: bool
) -> None:
    """A weakened helper is a changed definition; a comment is not."""

    def compiled() -> Workflow:
        step = {"name": "buy", "command": ["true"], "postconditions": [load().cheap]}
        return define_workflow({"type": "shop", "steps": [step]})

    before = compiled()
    file = tmp_path / path
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new) + "\n\n")

    after = compiled()

    assert (after.digest != before.digest) is changes


def test_a_module_elsewhere_on_the_path_is_found_and_one_of_another_project_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A workflow may import what is installed from a checkout; two projects may be open at once."""
    monkeypatch.setattr(sys, "path", [str(tmp_path / "shared"), *sys.path])
    for folder in ("first", "second", "shared"):
        (tmp_path / folder).mkdir()
    for folder in ("first", "second"):
        (tmp_path / folder / "book_rules.py").write_text(f"LIMIT = '{folder}'\n")
        (tmp_path / folder / "workflow.py").write_text(
            "import book_rules, book_words\ndef short(ctx):\n    return bool(book_rules.LIMIT)\n"
        )
    (tmp_path / "shared/book_words.py").write_text("WORDS = 1\n")
    first, second = (import_file(tmp_path / each / "workflow.py") for each in ("first", "second"))

    found = [describe_modules([each.short]) for each in (first, second)]

    assert [[name for name, _ in each] for each in found] == [
        ["book_rules.py", "book_words.py", "workflow.py"]
    ] * 2
    assert found[0][0] != found[1][0]
    assert found[0][1:] == found[1][1:]


def test_installed_code_and_code_without_source_are_left_out() -> None:
    """A new release of a library is no change of the definition."""
    shown: dict[str, Any] = {"__name__": "typed", "__file__": ""}
    exec("def typed(ctx):\n    return helper(ctx)", shown)  # as at a prompt

    assert describe_modules([shown["typed"], define_workflow, len, pytest.raises]) == []


def of(step: WorkflowStep, **more: Any) -> frozenset[str] | None:
    return param_names(WorkflowDefinition("x", [step], **more))


def test_names_in_prompts_and_expressions_are_the_parameters() -> None:
    """A parameter that the contract never uses is a typo, and is refused at the start."""
    step = WorkflowStep(
        "a",
        prompt="Write about {{ topic }} for {{item}}, as in {{draft.text}}.",
        parallel_key="chapters",
        postconditions=[Condition("long", "size(result.text) > params.words")],
        next=ConditionalNext("params.again == 'yes'", on_true="a", on_false="a"),
    )

    assert of(step) == frozenset({"topic", "draft", "chapters", "words", "again"})


@pytest.mark.parametrize(
    "step",
    [
        WorkflowStep("a", command=["make"]),
        WorkflowStep("a", prompt="x", postconditions=[Condition("ok", lambda _ctx: True)]),
        WorkflowStep("a", prompt="x", postconditions=[Condition("ok", "'a' in params")]),
    ],
    ids=["program", "function", "all of them"],
)
def test_a_workflow_with_code_accepts_any_parameter(step: WorkflowStep) -> None:
    """A program may read parameters that the contract does not mention."""
    assert of(step) is None


def test_declared_parameters_are_the_only_ones() -> None:
    """Authors of programs declare parameters so that typos are refused."""
    assert of(WorkflowStep("a", command=["make"]), params=["a"]) == frozenset({"a"})


def write(_ctx: Any) -> None:
    """Does nothing."""


def test_a_plan_lists_workers_and_conditions_of_each_step() -> None:
    """Before a run, its author sees which steps have no conditions."""
    workflow = define_workflow(
        {
            "type": "t",
            "database": "data/books.db",
            "steps": [
                {"name": "a", "command": ["git", "log"], "next": "b"},
                {
                    "name": "b",
                    "command": write,
                    "parallel": True,
                    "parallelKey": "areas",
                    "postconditions": [{"name": "written", "check": "true"}],
                    "next": "c",
                },
                {"name": "c", "prompt": "p", "agent": "codex", "next": "d"},
                {
                    "name": "d",
                    "preconditions": ["true"],
                    "humanGate": {"prompt": "?", "options": [{"label": "yes"}]},
                },
            ],
        }
    )

    steps = plan(workflow)

    assert [tuple(row) for row in steps.rows] == [
        ("a", "git log", "-", "-"),
        ("b", "write, for each of areas", "-", "written"),
        ("c", "agent codex", "-", "-"),
        ("d", "a human", "true", "-"),
    ]
    assert steps.notes[0].startswith("database: books.db")
    assert steps.facts["contract"]["steps"][1]["postconditions"] == ["written"]
