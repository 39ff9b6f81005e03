"""Reads flow files and the files they refer to: one call returns a flow, its goal and constraints.

A goal file says what to write, and names the material for it. Mistakes in all files are collected
and reported together, each with its file and line.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from signoff.agents.base import KnownAgent
from signoff.agents.kinds import DEFAULT_AGENT
from signoff.documents.files import display_path, read_text
from signoff.documents.mistakes import (
    Mistake,
    format_path,
    line_of,
    mistakes_of,
    unknown_key,
    without_paths,
)
from signoff.documents.mistakes import Path as KeyPath
from signoff.documents.source_file import SourceFile
from signoff.documents.yaml_text import Document
from signoff.errors import InvalidWorkflow, Problem
from signoff.flows.constraint_file import ConstraintLookup
from signoff.flows.flow_file import VERSION, FlowFile, GenloopFile
from signoff.flows.model import GenflowConfig, StepKind, WorkflowStep, keys_of, owners, with_ids
from signoff.flows.sections import Goal
from signoff.flows.validation import (
    flow_mistakes,
    flow_warnings,
    unable_reviewers,
    unable_writers,
    unknown_agents,
)
from signoff.review.constraint import Constraint, ConstraintBehavior
from signoff.review.prompt_templates import read_templates


class GoalFile(Goal):
    """What to write, and the material for it."""

    version: Literal[1] = Field(1, description="1")
    """The version of the file format."""


def load_goal(path: Path | str) -> Goal:
    """Returns the goal of a file, or of a folder that contains one; raises `InvalidWorkflow`."""
    problems: list[Problem] = []
    goal = read_goal(Path(path), problems)
    if goal is None:
        raise InvalidWorkflow("goal", problems)
    return goal


def read_goal(path: Path, problems: list[Problem]) -> Goal | None:
    """Returns the goal of a file or a folder; None after adding to `problems`."""
    if path.is_dir():
        return _goal_of_folder(path, problems)
    file = SourceFile(path)
    if path.suffix.lower() in (".yaml", ".yml") and isinstance(file.content, dict | None):
        return _goal_of_mapping(file, problems)
    text = read_text(path, problems)
    if text is not None and not text.strip():
        problems.append(Problem(display_path(path), "is empty", "write the goal into it"))
    return Goal(goal=text) if text and text.strip() else None


def _goal_of_folder(folder: Path, problems: list[Problem]) -> Goal | None:
    names = [name for name in ("goal.yaml", "goal.yml", "goal.md") if (folder / name).is_file()]
    if not names:
        problems.append(Problem(display_path(folder), "contains no goal.yaml and no goal.md"))
        return None
    return read_goal(folder / names[0], problems)


def _goal_of_mapping(file: SourceFile, problems: list[Problem]) -> Goal | None:
    document = file.mapping(problems, "fields", VERSION)
    if document is None:
        return None
    try:
        goal = GoalFile.model_validate(document.content)
    except ValidationError as error:
        found = [mistake.problem(document.at) for mistake in mistakes_of(error, GoalFile)]
        problems.extend(sorted(found, key=line_of))
        return None
    return Goal(goal=goal.goal, source=goal.source)


_TRIES = 5
"""How often invalid values are removed from a file to find out what else is wrong with it."""


@dataclass(frozen=True)
class ReadFlow:
    """A flow with everything that its file refers to."""

    config: GenflowConfig
    goal: Goal | None
    """From the goal file, otherwise from the flow file; None if neither has one."""
    constraints: tuple[Constraint, ...]
    """In the order of definition."""
    prompts: Mapping[str, str]
    """The templates of prompts that the flow replaces, by name."""
    warnings: tuple[str, ...]
    """What is odd but not a mistake, each with its location."""


def read_flow(
    file: SourceFile,
    *,
    root: Path,
    home: Path | None = None,
    goal: Path | None = None,
    known: Collection[str] | None = None,
    agents: Mapping[str, KnownAgent] | None = None,
    default_agent: str = DEFAULT_AGENT,
) -> ReadFlow:
    """Reads a flow file, its constraints and its goal; raises `InvalidWorkflow` with every problem.

    Relative paths start at `root`, the project's folder, or else next to the file. `known` are
    the agents that can be asked, and `agents` what is known about them; None skips a check.
    """
    problems: list[Problem] = []
    warnings: list[Problem] = []
    document, config = _read(file, problems)
    goal_in_file = read_goal(goal, problems) if goal is not None else None
    constraints: list[Constraint] = []
    prompts: dict[str, str] = {}
    if document is not None and config is not None:
        folders = (root, file.path.parent)
        lookup = ConstraintLookup(config.constraints, folders, home, document, problems, warnings)
        constraints = lookup.constraints()
        if config.prompts is not None:
            prompts = read_templates(config.prompts, folders[::-1], document.at, problems)
        # Some rules need the constraints. They would report nonsense about a flow in doubt.
        found = flow_mistakes(config, constraints) if not problems else []
        found += unknown_agents(config, constraints, known)
        found += unable_writers(config, agents or {}, default_agent)
        found += unable_reviewers(config, constraints, agents or {})
        problems.extend(mistake.problem(document.at) for mistake in found)
    if document is None or config is None or problems:
        raise InvalidWorkflow(file.name, problems)
    warnings.extend(m.problem(document.at) for m in flow_warnings(config, constraints))
    texts = tuple(str(each) for each in warnings)
    return ReadFlow(config, goal_in_file or config.goal, tuple(constraints), prompts, texts)


def read_flow_file(path: Path) -> GenflowConfig:
    """Returns a flow file without the files it refers to; raises `InvalidWorkflow`."""
    problems: list[Problem] = []
    _document, config = _read(SourceFile(path), problems)
    if config is None or problems:
        raise InvalidWorkflow(display_path(path), problems)
    return config


def read_policy(path: Path, base: GenflowConfig) -> GenflowConfig:
    """Returns a flow with the policy of a file: the behaviors, and what blocks approval.

    The file is a whole flow, or has only those of its keys; whatever it leaves out stays as it
    is in `base`, severity by severity. Raises `InvalidWorkflow` with every problem.
    """
    config = read_flow_file(path)
    keys = SourceFile(path).content
    # A file without steps is read as the fixed loop, which fills in severities of its own.
    own = ConstraintBehavior.from_dict(keys.get("default_behavior") or {}).by_severity
    changes: dict[str, Any] = {
        "default_behavior": ConstraintBehavior({**base.default_behavior.by_severity, **own})
    }
    if "constraint_behaviors" in keys:
        changes["constraint_behaviors"] = config.constraint_behaviors
    if (keys.get("adjudication") or {}).get("approval") or keys.get("termination"):
        block_on = config.adjudication.block_on
        changes["adjudication"] = replace(base.adjudication, block_on=block_on)
    return base.model_copy(update=changes)


def config_from_dict(raw: Mapping[str, Any], name: str = "flow") -> GenflowConfig:
    """Reads a flow as it is in YAML; raises `InvalidWorkflow` with every problem."""
    problems: list[Problem] = []
    if not isinstance(raw, Mapping):
        problems.append(Problem(name, f"is {raw!r:.60}", "a mapping with `workflow`"))
        raise InvalidWorkflow(name, problems)
    config = _checked(dict(raw), lambda path: format_path(path) or name, problems)
    if config is None or problems:
        raise InvalidWorkflow(name, problems)
    return config


def step_from_dict(raw: Mapping[str, Any]) -> WorkflowStep:
    """Reads one step as it is in YAML; raises `InvalidWorkflow` with every problem."""
    rest, mistakes = _without_unknown_keys({"workflow": [raw]})
    steps: tuple[WorkflowStep, ...] = ()
    try:
        steps = FlowFile.model_validate(rest).workflow
    except ValidationError as error:
        mistakes += mistakes_of(error, FlowFile)
    if mistakes:
        raise InvalidWorkflow("step", [mistake.problem(format_path) for mistake in mistakes])
    return with_ids(steps)[0]


# Set here because this module imports the models, and not the other way around.
WorkflowStep.from_dict = staticmethod(step_from_dict)
GenflowConfig.from_dict = staticmethod(config_from_dict)


def _read(
    file: SourceFile, problems: list[Problem]
) -> tuple[Document | None, GenflowConfig | None]:
    document = file.mapping(problems, "settings of a flow", VERSION)
    config = _checked(document.content, document.at, problems) if document is not None else None
    return document, config


def _checked(
    raw: dict[str, Any], at: Callable[[KeyPath], str], problems: list[Problem]
) -> GenflowConfig | None:
    """Returns what can be read of a flow; adds every mistake, in the order of the file.

    If there are problems, the result is only good for finding more of them.
    """
    form = _form_of(raw)
    # Unknown keys of steps are removed before the file is validated: pydantic would accept a key of
    # another kind of step, and the step would silently ignore it.
    rest, mistakes = _without_unknown_keys(raw)
    config, others = _parsed(form, rest)
    mistakes += others
    if config is None:
        config, others = _remainder(form, raw, mistakes)
        mistakes += others
    problems.extend(sorted((mistake.problem(at) for mistake in mistakes), key=line_of))
    return config


def _without_unknown_keys(raw: dict[str, Any]) -> tuple[dict[str, Any], list[Mistake]]:
    """Removes the keys of steps that their kind does not have.

    The model of a step has the keys of all kinds, so it would accept them.
    """
    mistakes = list(_unknown_keys(raw.get("workflow")))
    paths = [mistake.path for mistake in mistakes]
    return without_paths(raw, paths) if paths else raw, mistakes


def _unknown_keys(steps: Any) -> Iterator[Mistake]:
    for position, step in enumerate(steps if isinstance(steps, list) else ()):
        kind = step.get("step") if isinstance(step, Mapping) else None
        if not isinstance(kind, str) or kind not in set(StepKind):
            continue
        valid = keys_of(StepKind(kind))
        for key in step:
            if key not in valid:
                path = ("workflow", position, key)
                yield Mistake(path, *unknown_key(str(key), valid, owners(key)))


def _parsed(
    form: type[FlowFile | GenloopFile], raw: dict[str, Any]
) -> tuple[GenflowConfig | None, list[Mistake]]:
    try:
        file = form.model_validate(raw)
    except ValidationError as error:
        return None, mistakes_of(error, form)
    config = file.config()
    return config, [*file.disagreements(), *flow_mistakes(config)]


def _remainder(
    form: type[FlowFile | GenloopFile], raw: dict[str, Any], found: Sequence[Mistake]
) -> tuple[GenflowConfig | None, list[Mistake]]:
    """Returns a flow without its invalid values, and what else is wrong with it.

    Without this, a user would fix one kind of mistake only to learn about the next. A step whose
    kind, name or target is invalid is replaced by a harmless one, so that positions stay valid.
    """
    wrong = {mistake.path for mistake in found}
    doubtful = {path[1:2] for path in wrong if _shapes_the_flow(path)}
    rest = without_paths(raw, [path for path in wrong if path[1:2] not in doubtful])
    if doubtful:
        rest["workflow"] = _with_placeholders(rest.get("workflow"), doubtful)
    # Each try removes what the one before found to be invalid. A handful is enough, because a value
    # that is removed can only make the mapping around it incomplete.
    for _ in range(_TRIES):
        config, others = _parsed(form, rest)
        if config is not None:
            new = [mistake for mistake in others if mistake.path not in wrong]
            return config, _certain(new, doubtful) if doubtful else new
        # A required key was removed, so the mapping that needs it goes as well.
        rest = without_paths(rest, [mistake.path for mistake in others])
    return None, []


def _shapes_the_flow(path: KeyPath) -> bool:
    return path[:1] == ("workflow",) and (
        len(path) < 3 or path[2] in ("step", "name", "loop_to", "agent")
    )


def _with_placeholders(steps: Any, doubtful: set[KeyPath]) -> list[Any]:
    placeholder = {"step": StepKind.GENERATE.value}
    if () in doubtful or not isinstance(steps, list):
        return [placeholder]
    return [
        {**placeholder, "name": f"unread-{position}"} if (position,) in doubtful else step
        for position, step in enumerate(steps)
    ]


def _certain(found: Sequence[Mistake], doubtful: set[KeyPath]) -> list[Mistake]:
    """Returns the mistakes that do not depend on the doubtful steps: names that are taken."""
    return [
        mistake
        for mistake in found
        if mistake.path[2:] == ("name",) and mistake.path[1:2] not in doubtful
    ]


def _form_of(raw: Mapping[str, Any]) -> type[FlowFile | GenloopFile]:
    """Returns whether a file lists its steps (`workflow` may have a typo) or is the fixed loop."""
    if "workflow" in raw:
        return FlowFile
    others = [key for key in raw if key not in GenloopFile.model_fields]
    close = difflib.get_close_matches("workflow", others, n=1, cutoff=0.75)
    return FlowFile if close else GenloopFile
