from typing import Any

from signoff.contracts import define_workflow
from signoff.contracts.compile import plan


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
