"""What a notation is: a language for workflows, and everything signoff knows about it.

A notation is a compiler. It turns a file, or a name behind a scheme (`profile:jpa-mt`),
into a `Workflow`, and it may bring options, settings, commands, presets and views of its
own. Parts that cost time to import are named as `package.module:attribute` and loaded
when they are used, so the object itself is cheap to build.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from signoff.documents.trust import Trust

if TYPE_CHECKING:
    from signoff.agents.base import KnownAgent
    from signoff.core.events import Event
    from signoff.core.run_state import RunState
    from signoff.review.pure.history import ReviewHistory, ReviewNews

YAML_SUFFIXES = (".yaml", ".yml")


class OptionKind(StrEnum):
    """What an option of a command takes."""

    TEXT = "text"
    FLAG = "flag"
    FILE = "file"
    """An existing file; stored so that it is found again from the project's folder."""
    LIST = "list"
    """A list, written as JSON."""


@dataclass(frozen=True)
class NotationOption:
    """An option that a notation adds to general commands."""

    name: str
    """The key in `CompileContext.options`, and in what a worker hands in."""
    flag: str
    """How users write it, such as `--goal`."""
    help: str
    kind: OptionKind = OptionKind.TEXT
    metavar: str | None = None
    commands: tuple[str, ...] = ("run", "graph", "validate")
    """The commands that take it."""

    @property
    def word(self) -> str:
        """The flag without its dashes."""
        return self.flag.lstrip("-")


@dataclass(frozen=True)
class SettingsSection:
    """A section of the settings files that belongs to a notation."""

    name: str
    model: str
    """The pydantic model of the section."""
    help: str = ""
    """What it holds, for messages."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables, and the key of the section each one sets."""
    harmless: tuple[str, ...] = ()
    """Keys that a project may set without its user's trust: they start nothing, import nothing,
    send nothing elsewhere and raise no limit."""
    rounds: str = ""
    """The key that limits the rounds of the notation's runs, if they have one limit."""


@dataclass(frozen=True)
class Preset:
    """A set of files that `init` can write into a project."""

    name: str
    help: str
    files: str
    """`package:folder`. Files under `home/` go into `.signoff/`, the rest next to it; settings in
    `home/config.yaml` are added to the project's. The ending `.template` is removed: without it, a
    Python file would be part of the package."""
    target: str
    """What to run once the files are there: a path seen from the home, or `scheme:name`."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The options to run it with, by name."""
    external: bool = False
    """Whether external workers, such as a coding agent, do the work of its runs."""


@dataclass(frozen=True)
class Command:
    """A command that a notation adds to the program."""

    import_path: str
    """The click command, as `package.module:attribute`."""
    help: str
    section: str = "More"
    """The heading of `signoff --help` under which it is listed."""


@dataclass(frozen=True)
class RunReport:
    """What a notation reports about a run, built from the run's state and its definition."""

    summary: str = ""
    """A few lines for the end of a run."""
    details: str = ""
    """More lines, for `show`."""
    find_facts: Callable[[], Mapping[str, Any]] = dict
    """Returns the same for programs; most readers want none of thousands of findings."""
    text: str | None = None
    """The text that the run has come to, if it is run for that alone: stdout has nothing else.

    Empty if there is none yet; None for runs whose summary belongs on stdout.
    """

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """More fields of `show --json`, by name."""
        return self.find_facts()


class HistoryFold(Protocol):
    """Folds the journal of a run into the history of its review."""

    def apply(self, event: Event) -> Sequence[ReviewNews]:
        """Applies one event; returns what it adds to the review."""

    @property
    def history(self) -> ReviewHistory:
        """The review so far."""


@dataclass(frozen=True)
class RunSnapshot:
    """A run as it is stored."""

    name: str
    state: RunState
    description: Mapping[str, Any]
    """The definition that it was started with."""


class ResumeReport(Protocol):
    """Where a run that has not ended continues, for the human or the program that resumes it."""

    @property
    def lines(self) -> Sequence[str]:
        """What a human should know before; empty if there is nothing special."""

    @property
    def is_retry(self) -> bool:
        """Whether it continues with another attempt at a step whose last attempt failed."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """All of it for programs, as JSON values."""


@dataclass(frozen=True)
class DryRunPlan:
    """What a notation reports about a dry run, built from the workflow."""

    columns: Sequence[str]
    """Headings of a table."""
    rows: Sequence[Sequence[object]]
    """The rows of the table."""
    notes: Sequence[str]
    """What the table leaves out."""
    facts: Mapping[str, Any]
    """The same for programs: more fields of `run --dry-run --json`."""
    warnings: Sequence[str] = ()
    """What is odd about the files that a run would read."""


def _agents_without_settings() -> Mapping[str, KnownAgent]:
    # Help texts list the commands of notations, and should not wait for the agents.
    from signoff.agents.base import agents_without_settings

    return agents_without_settings()


class AgentJob(StrEnum):
    """What an agent is asked to do, as far as not every agent can."""

    ANSWER = "answer"
    WRITE = "write"
    REVIEW = "review"
    JUDGE = "judge"


class Ask(NamedTuple):
    """An agent or a role that a run asks."""

    agent: str
    model: str | None = None
    """The model that is named for it."""
    job: AgentJob = AgentJob.ANSWER


@dataclass(frozen=True)
class CompileContext:
    """What a compiler gets besides the file or the name."""

    root: Path
    """The project's folder; relative paths start there."""
    home: Path | None = None
    """The project's `.signoff/`; the first run may be about to create it."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The notation's own options, by name; those that were not passed are missing."""
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The sections of the settings that notations brought, by name."""
    workflows: Sequence[str] = ()
    """The folders, files and modules of the settings in which workflows have names."""
    agents: Mapping[str, KnownAgent] = field(default_factory=_agents_without_settings)
    """The agents and roles, with the capabilities of each."""
    default_agent: str = ""
    """The agent of steps that name none; empty leaves it to the notation."""
    agent: str = ""
    """The agent that the user wants instead; a notation with an option `agent` gets it as one."""
    installed: Sequence[str] = ()
    """Which of the usual agents are installed here."""
    without_key: Sequence[str] = ()
    """Agents whose key is not set here; only for warnings."""
    agent_names: Collection[str] | None = None
    """Every agent and role that can be named; None accepts any name."""
    trust: Trust = lambda _definitions: None
    """Raises `NotTrusted` unless the user trusts the settings and a folder of definitions; to be
    called before anything of the project is imported."""
    check_only: bool = False
    """Whether nothing will be run: what only a run needs may be missing."""
    resumes: bool = False
    """Whether the run exists already: what only its start needs may be missing."""

    @property
    def stored(self) -> dict[str, Any]:
        """What is stored with a run, under `given`, so that a resume compiles the same."""
        machine = {"default_agent": self.default_agent, "found": list(self.installed)}
        return {key: value for key, value in {**self.options, **machine}.items() if value}


@dataclass(frozen=True)
class Notation:
    """A language for workflows, with everything that belongs to it."""

    name: str
    """Stored with each run, so it never changes."""
    label: str
    """What its workflows are called in messages: `review flow`."""
    compile: str = ""
    """`(SourceFile, CompileContext) -> Workflow`; empty when it reads no files."""
    suffixes: tuple[str, ...] = YAML_SUFFIXES
    """The files it reads."""
    recognize: Callable[[Mapping[str, Any]], bool] = lambda _content: False
    """Tells from the top-level keys of a YAML file whether it is written in this notation."""
    scheme: str = ""
    """Targets `scheme:name` belong to this notation."""
    resolve: str = ""
    """`(name, CompileContext) -> Workflow`, for targets of its scheme."""
    names: str = ""
    """`(CompileContext) -> Iterable[str]`: the names of its scheme, so that a name can be run
    without the scheme. Called for every name that a user gives, so it must be quick and compile
    nothing."""
    shipped: str = ""
    """`() -> Iterable[str]`: which of these names are part of a package. A workflow of the project
    that has such a name goes before it."""
    discover: str = ""
    """`(CompileContext) -> Discovery`: what the project itself has under names of its scheme, and
    what is wrong with the rest. Compiles everything, for validation."""
    options: tuple[NotationOption, ...] = ()
    settings: SettingsSection | None = None
    layout: str = ""
    """A class of run directory layouts; empty for the plain one."""
    report: str = ""
    """`(state, description) -> RunReport`."""
    resume: str = ""
    """`(RunSnapshot) -> ResumeReport`: where a run continues, if its notation can say more."""
    history: str = ""
    """`(description) -> HistoryFold`, if its runs review something; `description` is the definition
    that a run was started with."""
    plan: str = ""
    """`(Workflow) -> DryRunPlan`."""
    asks: str = ""
    """`(Workflow, params) -> Iterable[Ask]`: the agents and roles that a run asks; those of steps
    with instructions are known."""
    review: str = ""
    """`(cwd, options, environment, limits) -> StartPlan`: plans a review of files that exist, by
    the options of its command, for surfaces other than the command line."""
    review_options: tuple[NotationOption, ...] = ()
    """The options that `review` takes."""
    schemas: str = ""
    """`package:folder` of JSON schemas for editors."""
    templates: str = ""
    """`(folder) -> list[Path]`: copies its prompt templates, as a start for a user's own."""
    presets: tuple[Preset, ...] = ()
    commands: Mapping[str, Command] = field(default_factory=dict)
