"""The notation of review flows: its options, presets and commands, loaded without the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.notation import Command, Notation, NotationOption, OptionKind, Preset


def recognize(content: Mapping[str, Any]) -> bool:
    """Tells whether a file lists steps as review flows do."""
    return "workflow" in content


def _preset(name: str, text: str) -> Preset:
    files = f"signoff.review.flow:presets/{name}"
    return Preset(name, text, files, f"flows/{name}.yaml", {"goal": f"{name}-goal.yaml"})


NOTATION = Notation(
    name="flows",
    label="review flow",
    compile="signoff.review.flow.compile:compile_file",
    recognize=recognize,
    options=(
        NotationOption(
            "goal",
            "--goal",
            "The goal of a flow: a goal.yaml, or a text file with just the goal.",
            OptionKind.FILE,
            "FILE",
        ),
        NotationOption(
            "allow_scripts",
            "--allow-scripts",
            "Allow scripts named in flow sources.",
            OptionKind.FLAG,
        ),
        # What `run --agent NAME` names, and the flow of `signoff review`; both are stored with the
        # run, and no command takes them as such.
        NotationOption("agent", "--agent", "The agent of what names none.", commands=()),
        NotationOption("review", "--review", "The flow of a review.", commands=()),
    ),
    scheme="review",
    resolve="signoff.review.flow.review_flow:resolve",
    discover="signoff.review.flow.review_flow:check_project",
    layout="signoff.review.flow.layout:FlowLayout",
    report="signoff.review.flow.end_view:report",
    history="signoff.review.flow.history:FlowHistory",
    plan="signoff.review.flow.plan:dry_run",
    asks="signoff.review.flow.plan:asks",
    review="signoff.surfaces.notations.review:plan_review",
    review_options=(
        NotationOption("paths", "", "Files and folders to review.", OptionKind.LIST),
        NotationOption("diff", "--diff", "Review what has changed since this commit or branch."),
        NotationOption("preset", "--preset", "The set of constraints to review against."),
        NotationOption("constraint", "", "Constraints to review against.", OptionKind.LIST),
        NotationOption("intent", "--intent", "What the change is meant to do."),
        NotationOption("fix", "--fix", "Fix what is found and review again.", OptionKind.FLAG),
        NotationOption(
            "all_lines", "--all-lines", "Report about unchanged lines, too.", OptionKind.FLAG
        ),
        NotationOption(
            "agent", "--agent", "The agent that reviews where a constraint names none, and fixes."
        ),
        NotationOption("fixer", "--fixer", "The agent that fixes; by default the one above."),
    ),
    schemas="signoff.review.flow:schemas",
    templates="signoff.review.flow.prompt_files:write_templates",
    presets=(
        _preset("docs", "a page checked against its sources: accuracy, structure, clarity, tone"),
        _preset(
            "code", "one source file whose tests pass: security, correctness, tests, simplicity"
        ),
        _preset("stories", "a short story in two passes: plot, character, continuity, language"),
        _preset("review", "files that exist, with a sign-off: correctness, completeness, clarity"),
    ),
    commands={
        "review": Command(
            "signoff.surfaces.notations.review:command",
            "Review files, folders or changes that exist.",
            "Run",
        ),
        "dismiss": Command(
            "signoff.surfaces.notations.policy:dismiss",
            "Dismiss a finding in later runs.",
            "Decide",
        ),
        "policy": Command(
            "signoff.surfaces.notations.policy:policy",
            "Explain findings, or replay a run with another policy.",
            "Inspect",
        ),
    },
)
