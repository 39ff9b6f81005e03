"""Checks a flow as a whole, one small function per rule; every mistake is reported.

Warnings are about what is odd but not a mistake, so a run starts anyway: patterns that match
nothing, reviews that no judge sees, sources that cannot be read. Prompts mention missing sources as
well, but the user who starts a run reads the terminal.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from shutil import which

from signoff.agents.base import KnownAgent
from signoff.core.errors import Problem
from signoff.documents.mistakes import Mistake, Path, format_path
from signoff.review.flow.model import (
    FILES_STEP,
    POLICY_JUDGE,
    Flow,
    GenflowConfig,
    StepKind,
    WorkflowStep,
    keys_of,
    owners,
    resolve_constraints_for_step,
    select_reviewers,
    with_ids,
)
from signoff.review.pure.constraint import Constraint, SourceBlock

MOST_LISTED = 12
"""Constraints that a remedy lists."""


def validate_workflow(
    config: GenflowConfig, constraints: Sequence[Constraint] | None = None
) -> list[Problem]:
    """Returns everything that is wrong with a flow; `str` of each is one line."""
    found = flow_mistakes(config, constraints)
    return [mistake.problem(lambda path: format_path(path) or "flow") for mistake in found]


def flow_mistakes(
    config: GenflowConfig, constraints: Sequence[Constraint] | None = None
) -> list[Mistake]:
    """Returns everything that is wrong with a flow, by its path in the file."""
    if not config.workflow:
        return [Mistake(("workflow",), "workflow is empty", "at least one generate step")]
    # Every rule runs, whatever the others find: an author fixes a flow in one go.
    found = [mistake for rule in _RULES for mistake in rule(config)]
    found.extend(_idle_critics(config, constraints or ()))
    found.extend(_model_of_several_agents(config, constraints or ()))
    found.extend(_passes_unreviewed(config, constraints))
    return found


def _names(config: GenflowConfig) -> Iterator[Mistake]:
    ids = [step.id for step in with_ids(config.workflow)]
    for position, name in enumerate(ids):
        first = ids.index(name)
        if first != position:
            what = f"{name!r} is the name of workflow[{first}] and of workflow[{position}]"
            yield Mistake(("workflow", position, "name"), what, "give each step its own name")


def _fields_of_other_kinds(config: GenflowConfig) -> Iterator[Mistake]:
    """A step built in Python may have fields of another kind, which would do nothing."""
    for position, step in enumerate(config.workflow):
        own = (*keys_of(step.step), "id")
        for name, field in WorkflowStep.model_fields.items():
            # Steps from files never get here with such a key: reading a file refuses it.
            if name not in own and getattr(step, name) != field.default:
                path = ("workflow", position, name)
                what = f"{format_path(path)} is not a key of {step.step} steps"
                yield Mistake(path, what, owners(name))


def _starts_with_generate(config: GenflowConfig) -> Iterator[Mistake]:
    kinds = [step.step for step in config.workflow]
    if config.artifact is not None:
        yield from _starts_from_files(config, kinds)
    elif StepKind.GENERATE not in kinds:
        remedy = "nothing would be written; to review files that exist, add artifact:"
        yield Mistake(("workflow",), "there is no generate step", remedy)
    elif kinds[0] is not StepKind.GENERATE:
        what = f"the first step is {kinds[0]}, but there is nothing to work on yet"
        yield Mistake(("workflow", 0), what, "start with a generate step")


def _starts_from_files(config: GenflowConfig, kinds: Sequence[StepKind]) -> Iterator[Mistake]:
    if StepKind.GENERATE in kinds:
        position = kinds.index(StepKind.GENERATE)
        what = "a flow with artifact: has no generate step"
        yield Mistake(("workflow", position), what, "remove the step, or artifact:")
    for position, step in enumerate(with_ids(config.workflow)):
        if step.id == FILES_STEP:
            what = f"{FILES_STEP!r} is the name of the step that reads the files"
            yield Mistake(("workflow", position, "name"), what, "choose another name")
    source = config.artifact
    if source is not None and not (source.every_path or source.globs or source.since):
        yield Mistake(("artifact",), "artifact names no files", "add path, paths, globs or since")
    if source is not None and source.since and source.globs:
        what = "globs choose files of the project, and since those of a change"
        yield Mistake(("artifact", "globs"), what, "name paths, or paths of each constraint")


def _sign_offs(config: GenflowConfig) -> Iterator[Mistake]:
    kinds = [step.step for step in config.workflow]
    for position, step in enumerate(config.workflow):
        if step.step is not StepKind.SIGN_OFF:
            continue
        if StepKind.ADJUDICATE not in kinds[:position]:
            what = f"{_name(config, position)} comes before any adjudicate step"
            yield Mistake(("workflow", position), what, "a human signs off what a judge passed")
        if (step.deadline is None) != (step.default is None):
            what = f"{_name(config, position)} needs both deadline and default, or neither"
            yield Mistake(("workflow", position), what, "default is what counts at the deadline")
        if step.presence and step.default == "approve":
            what = f"{_name(config, position)} requires presence, and default approves without it"
            yield Mistake(("workflow", position, "default"), what, "use default: reject")


def _output_of_files(config: GenflowConfig) -> Iterator[Mistake]:
    if config.artifact is None and config.output.write_back != "never":
        what = "output.write_back is set, but the artifact comes from no file"
        yield Mistake(("output", "write_back"), what, "only flows with artifact: have it")


def _refine_after_a_judge(config: GenflowConfig) -> Iterator[Mistake]:
    kinds = [step.step for step in config.workflow]
    for position, kind in enumerate(kinds):
        if kind is StepKind.REFINE and StepKind.ADJUDICATE not in kinds[:position]:
            what = f"{_name(config, position)} comes before any adjudicate step"
            yield Mistake(("workflow", position), what, "only a judge decides what to fix")


def _loops(config: GenflowConfig) -> Iterator[Mistake]:
    ids = [step.id for step in with_ids(config.workflow)]
    for position, step in enumerate(config.workflow):
        earlier = ids[:position]
        if step.step is StepKind.REFINE and step.loop_to not in (None, *earlier):
            path = ("workflow", position, "loop_to")
            value = f"{format_path(path)} is {step.loop_to!r}"
            reason = "which is not an earlier step" if step.loop_to in ids else "an unknown step"
            remedy = f"one of: {', '.join(earlier)}" if earlier else "a step that comes earlier"
            yield Mistake(path, f"{value}, {reason}", remedy)


def _all_reached(config: GenflowConfig) -> Iterator[Mistake]:
    """The step after a refine that loops is only reached by a pass that skips the refine."""
    # The only way around a refine step that loops is an approval that does not end the run. A step
    # behind it that no approval leads to would never run, and the author would not notice.
    reached = {0}
    ids = [step.id for step in with_ids(config.workflow)]
    for position, step in enumerate(config.workflow):
        if position not in reached:
            what = f"{_name(config, position)} is never reached: the step before it always loops"
            remedy = "only a pass that does not end the run skips a refine step"
            yield Mistake(("workflow", position), what, remedy)
            return
        if step.loop_to not in ids[:position]:  # Absent, or invalid and reported by `_loops`.
            reached.add(position + 1)
        if step.step is StepKind.ADJUDICATE and config.leads_past_fixes(position):
            reached.add(position + 2)


def _policy_only_judges(config: GenflowConfig) -> Iterator[Mistake]:
    for position, step in enumerate(config.workflow):
        if step.agent == POLICY_JUDGE and step.step is not StepKind.ADJUDICATE:
            path = ("workflow", position, "agent")
            what = f"{format_path(path)} is {POLICY_JUDGE!r}"
            yield Mistake(path, what, "the built-in judge is only for adjudicate steps")


_RULES = (
    _names,
    _fields_of_other_kinds,
    _starts_with_generate,
    _output_of_files,
    _sign_offs,
    _refine_after_a_judge,
    _loops,
    _all_reached,
    _policy_only_judges,
)


def _idle_critics(config: GenflowConfig, constraints: Sequence[Constraint]) -> Iterator[Mistake]:
    """A critique step whose patterns match nothing reviews nothing, and looks as if it did."""
    for position, step in enumerate(config.workflow):
        idle = constraints and step.constraints and not any(map(step.selects, constraints))
        if step.step is StepKind.CRITIQUE and idle:
            what = f"{_name(config, position)} selects none of the constraints"
            remedy = f"select one of: {', '.join(each.id for each in constraints[:12])}"
            yield Mistake(("workflow", position, "constraints"), what, remedy)


def _model_of_several_agents(
    config: GenflowConfig, constraints: Sequence[Constraint]
) -> Iterator[Mistake]:
    """One model name cannot be right for several agents."""
    routing = config.constraints.routing
    for position, step in enumerate(config.workflow):
        if step.step is not StepKind.CRITIQUE or step.model is None or step.agent is not None:
            continue
        chosen = resolve_constraints_for_step(step, constraints)
        routed = [select_reviewers(None, each, routing, ("one",))[0] for each in chosen]
        agents = next((agents for agents in routed if len(agents) > 1), ())
        if agents:
            path = ("workflow", position, "model")
            what = f"{format_path(path)} is {step.model!r}, but the routing names"
            remedy = "name the step's agent too, or leave the model out"
            yield Mistake(path, f"{what} {', '.join(agents)}", remedy)


def _passes_unreviewed(
    config: GenflowConfig, constraints: Sequence[Constraint] | None
) -> Iterator[Mistake]:
    """A judge that ends the run must not be able to pass what no critic has read."""
    kinds = [step.step for step in config.workflow]
    ends = [
        position
        for position, kind in enumerate(kinds)
        if kind is StepKind.ADJUDICATE and config.ends_on_approval(position)
    ]
    # An author may want a judge without critics, as in a flow whose human reads everything. That
    # has to be written down, because by accident it would pass anything.
    if config.allow_unreviewed or not ends:
        return
    for position in ends:
        if StepKind.CRITIQUE not in kinds[:position]:
            what = f"{_name(config, position)} passes the text before any critique step"
            remedy = "put a critique step before it, or set allow_unreviewed: true"
            yield Mistake(("workflow", position), what, remedy)
    if constraints is None or StepKind.CRITIQUE not in kinds:
        return
    critics = [step for step in config.workflow if step.step is StepKind.CRITIQUE]
    if not constraints:
        remedy = "add constraints, or set allow_unreviewed: true"
        yield Mistake(("constraints",), "there are no constraints, so nothing is reviewed", remedy)
    elif not any(step.selects(each) for step in critics for each in constraints):
        what = "no critique step selects a constraint, so nothing is reviewed"
        names = ", ".join(each.id for each in constraints[:MOST_LISTED])
        remedy = f"select one of: {names}; or set allow_unreviewed: true"
        yield Mistake(("workflow",), what, remedy)


def _name(config: GenflowConfig, position: int) -> str:
    step = config.workflow[position]
    return f"step {step.name!r}" if step.name else f"the {step.step} step at {position}"


def unknown_agents(
    config: GenflowConfig, constraints: Sequence[Constraint], known: Collection[str] | None
) -> list[Mistake]:
    """Returns every name that is neither an agent nor a role; none if `known` is None."""
    if known is None:
        return []
    remedy = f"valid: {', '.join(sorted(known))}; add others under agents: in the settings"
    return [
        Mistake(path, f"{what} {agent!r}, an unknown agent", remedy)
        for path, what, agent in _agents_by_path(config, constraints)
        if agent not in known and agent != POLICY_JUDGE
    ]


VERBS = {StepKind.GENERATE: "write", StepKind.REFINE: "fix", StepKind.ADJUDICATE: "judge"}
"""What the agents of steps do that an agent which only checks cannot do."""


def unable_writers(
    config: GenflowConfig, agents: Mapping[str, KnownAgent], default_agent: str
) -> Iterator[Mistake]:
    """Yields every step that writes, fixes or judges with an agent that computes critiques.

    Its answer to any prompt is a critique, which would become the text.
    """
    for position, step in enumerate(config.workflow):
        agent, verb = step.agent or default_agent, VERBS.get(step.step)
        known = agents.get(agent)
        # Agents that need no settings all write, and are not imported to be asked about it.
        if verb and known and known.configured and known.capabilities.deterministic:
            path: Path = ("workflow", position, *(("agent",) if step.agent else ()))
            what = f"{_name(config, position)}: the agent {agent!r} only checks and cannot {verb}"
            yield Mistake(path, what, "name another agent for this step (agent:)")


def unable_reviewers(
    config: GenflowConfig, constraints: Sequence[Constraint], agents: Mapping[str, KnownAgent]
) -> Iterator[Mistake]:
    """Yields every place that names a model to review or judge that is too small for it."""
    writers = [
        ("workflow", position, "agent")
        for position, step in enumerate(config.workflow)
        if step.step in (StepKind.GENERATE, StepKind.REFINE)
    ]
    for path, what, agent in _agents_by_path(config, constraints):
        known = agents.get(agent)
        if known and path not in writers and not known.capabilities.judges:
            problem = f"{what} {agent!r}, a model that is too small to review or judge"
            yield Mistake(path, problem, "it can write a sentence or two; let checks review")


def _agents_by_path(
    config: GenflowConfig, constraints: Sequence[Constraint]
) -> Iterator[tuple[Path, str, str]]:
    for position, step in enumerate(config.workflow):
        if step.agent is not None:
            path: Path = ("workflow", position, "agent")
            yield path, f"{format_path(path)} is", step.agent
    if config.verify is not None:
        yield ("verify", "agent"), "verify.agent is", config.verify.agent
    routing = config.constraints.routing
    groups: list[tuple[Path, tuple[str, ...]]] = [(("default_agents",), routing.default_agents)]
    groups += [(("rules", n), rule.agents) for n, rule in enumerate(routing.rules)]
    groups += [(("priority_routing", n), r.agents) for n, r in enumerate(routing.priority_routing)]
    for key, agents in groups:
        path = ("constraints", "routing", *key)
        yield from ((path, f"{format_path(path)} names", agent) for agent in agents)
    for constraint in constraints:
        message = f"the constraint {constraint.id!r} names"
        yield from ((("constraints",), message, agent) for agent in constraint.agents or ())


VARIABLE = "{{"
"""Paths that contain it may lead into the run's own folder, which does not exist yet."""


def flow_warnings(config: GenflowConfig, constraints: Sequence[Constraint]) -> list[Mistake]:
    """Returns what the author of a flow may want to know, by its path in the file."""
    found = [*_judging(config)]
    if not constraints:
        return [
            *found,
            Mistake(("constraints",), "there are no constraints, so critics review nothing"),
        ]
    return [*found, *_patterns(config, constraints), *_unread(config, constraints)]


def _patterns(config: GenflowConfig, constraints: Sequence[Constraint]) -> Iterator[Mistake]:
    for path, pattern in _all_patterns(config):
        if not any(fnmatchcase(constraint.id, pattern) for constraint in constraints):
            yield Mistake(path, f"{format_path(path)}: {pattern!r} matches no constraint")
    for position, route in enumerate(config.constraints.routing.priority_routing):
        low, high = route.range
        if not any(low <= each.priority <= high for each in constraints):
            path = ("constraints", "routing", "priority_routing", position)
            what = f"no constraint has a priority from {low} to {high}"
            yield Mistake(path, f"{format_path(path)}: {what}")


def _all_patterns(config: GenflowConfig) -> Iterator[tuple[tuple[str | int, ...], str]]:
    for position, step in enumerate(config.workflow):
        for index, pattern in enumerate(step.constraints or ()):
            yield ("workflow", position, "constraints", index), pattern
    for position, rule in enumerate(config.constraints.routing.rules):
        yield ("constraints", "routing", "rules", position, "match"), rule.match
    for pattern in config.constraint_behaviors:
        yield ("constraint_behaviors", pattern), pattern


def _unread(config: GenflowConfig, constraints: Sequence[Constraint]) -> Iterator[Mistake]:
    critics = [step for step in config.workflow if step.step is StepKind.CRITIQUE]
    for constraint in constraints:
        if not any(step.selects(constraint) for step in critics):
            what = f"no critique step reviews the artifact against {constraint.id!r}"
            yield Mistake(("workflow",), what)


def _judging(config: GenflowConfig) -> Iterator[Mistake]:
    kinds = [step.step for step in config.workflow]
    if StepKind.ADJUDICATE not in kinds:
        what = "no adjudicate step: nothing passes, a run ends at its round limit"
        yield Mistake(("workflow",), what)
    for position, step in enumerate(with_ids(config.workflow)):
        if step.step is StepKind.ADJUDICATE and StepKind.CRITIQUE not in kinds[:position]:
            yield Mistake(("workflow", position), f"{step.id!r} judges before any critique step")


def source_warnings(flow: Flow) -> Iterator[str]:
    """Yields which files of globs cannot be read and which scripts will not run."""
    blocks = {name: block for name, block in flow.sources.items() if block != SourceBlock()}
    if blocks:
        yield from _unreadable(flow, blocks)
    # Scripts are programs that the flow's author chose. They run only if the user of the run says
    # so, and a run without their output is another one, so it is said before it starts.
    scripts = [script for block in blocks.values() for script in block.scripts]
    scripts += [each.script for each in flow.constraints if each.script.strip()]
    if scripts and not flow.allow_scripts:
        names = ", ".join(scripts)
        yield f"scripts run only if the run allows them (allow_scripts); these will not: {names}"


def _unreadable(flow: Flow, blocks: Mapping[str, SourceBlock]) -> Iterator[str]:
    # Most flows have no sources and should not wait for what reads them.
    from signoff.review.flow.steps.material import read_source

    allowed = [flow.home] if flow.home else []
    for name, block in blocks.items():
        globs = tuple(path for path in block.globs if VARIABLE not in path)
        checked = SourceBlock(globs=globs, inline=block.inline)
        read = read_source(checked, root=flow.root, allowed=allowed, variables={})
        for message in (*read.errors, *read.warnings):
            yield f"{_heading(name)}: {message}"


def source_problems(flow: Flow) -> Iterator[str]:
    """Yields which files, variables and programs that sources and scripts name are missing.

    A run without them would be paid for and be about something else.
    """
    for name, block in flow.sources.items():
        if block != SourceBlock():
            # Most flows have no sources and should not wait for what reads them.
            from signoff.review.flow.steps.material import missing_material

            yield from (f"{_heading(name)}: {each}" for each in missing_material(flow, block))
    for constraint in flow.constraints if flow.allow_scripts else ():
        program = next(iter(shlex.split(constraint.script)), VARIABLE)
        # A relative path starts at the project's folder, where a run starts it.
        if VARIABLE not in program and not any(map(which, (program, str(flow.root / program)))):
            yield f"script of {constraint.id}: there is no program {program!r}"


def _heading(name: str) -> str:
    return f"sources of {name or 'the goal'}"
