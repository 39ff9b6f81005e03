"""`signoff review`: reviews files that exist with an ordinary review flow, and prints the findings.

Each is printed as `file:line: severity rule: message`, with the quote below it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property, partial
from pathlib import Path
from typing import Any, assert_never

import click

from signoff.agents.base import Health
from signoff.app.people.answering import current_user
from signoff.app.runs.show import RunDetails, show
from signoff.app.runs.start import StartPlan, plan
from signoff.app.runs.targets import compile_context
from signoff.app.settings.agents import describe, refuse_not_ready
from signoff.app.settings.home import Home, expected_home, init_home
from signoff.app.settings.project import Project
from signoff.app.settings.settings import load_settings
from signoff.core.amounts import count
from signoff.core.errors import UsageError, WriteFailed
from signoff.core.outcome import Status
from signoff.core.severity import Severity
from signoff.core.spend import Limits
from signoff.core.words import FindingStatus
from signoff.core.workflow import Workflow
from signoff.documents.home_folder import VARIABLE
from signoff.documents.trust import VARIABLE as TRUST
from signoff.notation import AgentJob, OptionKind
from signoff.review.flow.coverage import EXECUTES, LARGEST_BYTES
from signoff.review.flow.decision_file import add_decisions
from signoff.review.flow.files.git import base_tree
from signoff.review.flow.files.selection import (
    FileSelector,
    NothingToReviewError,
    Selection,
    covered,
    piped_text,
    prepared,
    skipped_note,
)
from signoff.review.flow.flow_notation import NOTATION
from signoff.review.flow.plan import asks, call_bounds
from signoff.review.flow.review_flow import (
    OPTION,
    TARGET,
    find_constraints,
    review_source,
    with_agents,
)
from signoff.review.flow.state import FlowState, finding_line
from signoff.review.flow.steps.sign_off import changed_files
from signoff.review.pure.artifact import place
from signoff.review.pure.constraint import Constraint
from signoff.review.pure.coverage import ReviewCoverage
from signoff.review.pure.diff import unified_diff
from signoff.review.pure.finding import describe_equal, group_equal
from signoff.review.pure.findings import Finding
from signoff.review.pure.history import ReviewHistory, Version, finding_to_json
from signoff.review.pure.lasting_decision import BASELINE, LastingDecision
from signoff.runtime.project_files import conflict_text, replace_files
from signoff.surfaces.cli import exits
from signoff.surfaces.cli.driving import drive_new, finish
from signoff.surfaces.cli.options import (
    CliCommand,
    limit_settings,
    progress_options,
    set_up_logging,
)
from signoff.surfaces.cli.output import DisplayOptions, Output
from signoff.surfaces.cli.summary import report_to_json

BASE, WORKTREE = "base", "worktree"
MOST_CALLS = 50
"""Calls that a review makes without asking; more need `--yes` or a limit."""
STDIN = "-"
FAIL_ON = [each.key for each in reversed(Severity)]


@click.command(cls=CliCommand)
@click.argument("paths", nargs=-1, metavar="PATH...")
@click.option("--diff", "since", metavar="BASE",
              help="Review what has changed since a branch, tag or commit of git.")  # fmt: skip
@click.option("--all-lines", is_flag=True,
              help="With --diff, report about lines that have not changed, too.")  # fmt: skip
@click.option(
    "--preset",
    metavar="NAME",
    help="Review against .signoff/constraints/NAME, or else a built-in preset.",
)
@click.option("--constraint", "sentences", multiple=True, metavar="TEXT",
              help="Review against this. Repeatable.")  # fmt: skip
@click.option("--intent", default="", metavar="TEXT",
              help="What the change is meant to do, for the critics.")  # fmt: skip
@click.option("--agent", metavar="NAME",
              help="The agent that reviews where a constraint names none, and fixes.")  # fmt: skip
@click.option("--fix", is_flag=True,
              help="Fix what is found, review again, print a diff; no file changes.")  # fmt: skip
@click.option("--fixer", metavar="NAME",
              help="With --fix, the agent that fixes; by default --agent.")  # fmt: skip
@click.option("--write", is_flag=True,
              help="With --fix, change the files of the project as well.")  # fmt: skip
@click.option("--patch", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="With --fix, write the diff to FILE.")  # fmt: skip
@click.option("--config-from", type=click.Choice([BASE, WORKTREE]), metavar="base|worktree",
              help="With --diff, where settings, constraints, decisions and programs come from; "
              "base in CI.")  # fmt: skip
@click.option("--fail-on", type=click.Choice(FAIL_ON), metavar="SEVERITY",
              help=f"The least severity that blocks: {', '.join(FAIL_ON)}; by default high.",
)  # fmt: skip
@click.option("--baseline", is_flag=True,
              help="Accept what is found today, so that only new findings block.")  # fmt: skip
@click.option("--name", metavar="NAME", help="A name for the run; must be new.")
@click.option("--yes", is_flag=True, help=f"Make more than {MOST_CALLS} calls without asking.")
@click.option("--dry-run", is_flag=True, help="Show the files and the calls, but start nothing.")
@progress_options
def command(
    paths: tuple[str, ...],
    since: str | None,
    name: str | None,
    yes: bool,
    dry_run: bool,
    patch: Path | None,
    limits: dict[str, str],
    display: DisplayOptions,
    **options: Any,
) -> int:
    """Review files, folders, standard input (-) or the changes since a git ref.

    Constraints are those of --preset and --constraint, or else those in .signoff/constraints.
    Files that git ignores, hidden, generated, vendored, lock and binary files, and those listed in
    .signoffignore are left out of folders and changes.

    It is a shortcut: the command builds a review flow with `artifact:` and runs it, so `show`,
    `resume` and all other commands work with it. The exit code is 0 if nothing blocks, also
    if a change has no files to review; 17 if blocking findings are open or, without --write,
    were fixed only in copies; and 18 if the review is incomplete: a file is too large or
    unreadable, or one that you name is covered by no constraint.

    Examples:
      signoff review README.md --preset docs
      signoff review src docs --dry-run
      signoff review --diff origin/main --preset code
      signoff review docs --fix --patch fixes.patch
      git diff --cached | signoff review - --constraint "No secrets."
    """
    if not paths and since is None:
        raise UsageError("name files or folders, - for standard input, or --diff BASE")
    if (options["write"] or patch) and not options["fix"]:
        raise UsageError("--write and --patch are about fixes; add --fix")
    if options["fixer"] and not options["fix"]:
        raise UsageError("--fixer is about fixes; add --fix")
    if options["write"] and paths == (STDIN,):
        raise UsageError("standard input cannot be written; leave out --write")
    # Everything is checked and read before the run starts, so that a wrong option costs nothing.
    prepared = _Review(paths, since, options, os.environ, Path.cwd())
    try:
        planned, selection = prepared.plan(name=name, limits=limits)
    except NothingToReviewError as error:
        if since is None:
            raise
        return print_no_changes(error.selection, display.out)
    for each in prepared.left_out:
        display.out.warn(
            f"{each} is not checked: with --config-from base, no program executes the change"
        )
    report = partial(
        print_review,
        out=display.out,
        fix=options["fix"],
        patch=patch.absolute() if patch is not None else None,
        write=options["write"],
        baseline=options["baseline"],
    )
    display = replace(display, report=report)
    folder = prepared.folder
    return _start(planned, selection, display, folder, name=name, yes=yes, dry_run=dry_run)


def plan_review(
    cwd: Path,
    options: Mapping[str, Any],
    environment: Mapping[str, str],
    limits: Mapping[str, str],
) -> StartPlan:
    """Plans a review for a surface that starts it without a command line.

    Paths are relative to `cwd`. `options` are those of the command that neither change files nor
    skip a question; raises `UsageError` for others.
    """
    known = {each.name: each.kind for each in NOTATION.review_options}
    if unknown := sorted(options.keys() - known.keys()):
        raise UsageError(f"unknown option {unknown[0]!r}; a review has: {', '.join(known)}")
    flags = {name: _checked(name, options.get(name), kind) for name, kind in known.items()}
    paths, since = tuple(flags["paths"]), flags["diff"]
    if STDIN in paths or not (paths or since):
        raise UsageError("name files or folders (paths), or the base of a change (diff)")
    flags |= {"write": False, "baseline": False, "config_from": None, "fail_on": None}
    flags |= {"sentences": flags["constraint"], "intent": flags["intent"] or ""}
    review = _Review(paths, since, flags, environment, cwd)
    planned, _ = review.plan(name=None, limits=limits)
    own = _limits(planned, yes=False)
    return replace(planned, own_limits=own, limits=own.over(planned.limits))


def _checked(name: str, value: Any, kind: OptionKind) -> Any:
    """Returns the value of an option, or its default; raises `UsageError` if it does not fit."""
    default: Any = None
    match kind:
        case OptionKind.FLAG:
            default, what, fits = False, "true or false", isinstance(value, bool)
        case OptionKind.LIST:
            default, what = [], "a list of texts"
            fits = isinstance(value, list) and all(isinstance(each, str) for each in value)
        case OptionKind.TEXT | OptionKind.FILE:
            what, fits = "a text", isinstance(value, str)
        case _:
            assert_never(kind)
    if value not in (None, "") and not fits:
        raise UsageError(f"{name} must be {what}, not {value!r}")
    return value or default


@dataclass
class _Review:
    """Turns the command line into the plan of a run."""

    paths: tuple[str, ...]
    since: str | None
    options: Mapping[str, Any]
    environment: Mapping[str, str]
    cwd: Path
    folder: Path = Path()
    """Where programs run: in the project, or in the project before the change."""
    left_out: tuple[str, ...] = ()
    """Constraints that would execute the change, whose rules come from before it."""

    def plan(self, *, name: str | None, limits: Mapping[str, str]) -> tuple[StartPlan, Selection]:
        """Returns what a run would start with, and the files it is about."""

        cwd = self.cwd
        home = expected_home(cwd, self.environment)
        base = self._base(home)
        selection = self._select(home.root, cwd, base)
        rules = base / home.path.name if base is not None else home.path
        constraints = self._constraints(Home(rules), trusted=base is not None)
        paths = [_portable(path, cwd, home.root) for path in self.paths]
        planned = plan(
            base or cwd,
            self.environment,
            TARGET,
            {},
            name=name,
            command_line=limit_settings(limits),
            options={OPTION: review_source(paths, self.since, self.options, constraints)},
        )
        workflow = planned.target.workflow
        flow = next(iter(workflow.steps.values())).handler.flow  # type: ignore[union-attr]
        selection = covered(flow, selection)
        params = prepared(
            flow,
            selection,
            trusted=selection.base if base is not None else None,
            unchecked=dict.fromkeys(self.left_out, EXECUTES),
        )
        target = replace(planned.target, workflow=workflow.with_prepare(lambda _params: params))
        self.folder = base or home.root
        return replace(planned, target=target, home=home, code_root=base), selection

    def _constraints(self, home: Home, *, trusted: bool) -> list[Constraint]:

        flags = self.options
        constraints = find_constraints(home.path, flags["preset"], flags["sentences"])
        if not any(each.agents for each in constraints):
            return constraints
        known = compile_context(home, load_settings(home, self.environment)).agents
        used, left_out = with_agents(constraints, known, execute=not trusted)
        self.left_out = tuple(left_out)
        return used

    def _base(self, home: Home) -> Path | None:
        """Returns the project as it was before the change, if the rules come from there."""
        source = self.options["config_from"]
        if self.since is None:
            if source is not None:
                raise UsageError("--config-from is about reviews of changes; add --diff BASE")
            return None
        if source is None:
            source = BASE if self.environment.get("CI") else WORKTREE
        if source == WORKTREE:
            return None
        if self.options["write"] or self.options["baseline"]:
            raise UsageError(
                "--write and --baseline change the project; add --config-from worktree"
            )

        repository = FileSelector(home.root, home.root).repository()
        commit = repository.commit(self.since)
        if not home.path.is_dir():
            init_home(self.cwd, self.environment)
        # From the base, nothing of the change is read or imported, not even by accident; what the
        # target branch says is trusted.
        own = {key: value for key, value in self.environment.items() if key != VARIABLE}
        self.environment = {**own, TRUST: "1"}
        return base_tree(repository, commit, home.path)

    def _select(self, root: Path, cwd: Path, base: Path | None) -> Selection:

        selector = FileSelector(root, cwd, base)
        if self.since is not None:
            return selector.changed_since(self.since, self.paths, self.options["intent"])
        if self.paths == (STDIN,):
            return piped_text(sys.stdin.buffer.read(LARGEST_BYTES + 1))
        if STDIN in self.paths:
            raise UsageError("review either standard input or files, not both")
        return selector.select(self.paths)


def _portable(path: str, cwd: Path, root: Path) -> str:
    return path if path == STDIN else os.path.relpath((cwd / path).resolve(), root.resolve())


def _start(
    planned: StartPlan,
    selection: Selection,
    display: DisplayOptions,
    folder: Path,
    *,
    name: str | None,
    yes: bool,
    dry_run: bool,
) -> int:

    out, workflow = display.out, planned.target.workflow
    files = count(len(selection.files), "file")
    calls = count(call_bounds(workflow)["per_round"], "call")
    summary = f"{files}{skipped_note(selection)}; {calls} planned"
    for warning in (*planned.warnings, *workflow.warnings):
        out.warn(str(warning))
    if dry_run:
        return _print_plan(planned, selection, summary, out)
    out.note(f"reviewing {summary}, at most {_most_calls(planned)} with corrections")
    limits = _limits(planned, yes=yes)
    with chdir(folder):
        _refuse_not_ready(planned.not_ready(), workflow)
    set_up_logging(planned.settings)
    # A run's programs work in the folder it was started in: the settings name them from there.
    with chdir(folder), planned.open(folder, os.environ) as project:
        return drive_new(project, planned, display, {}, name=name, limits=limits)


def _limits(planned: StartPlan, *, yes: bool) -> Limits:
    """Returns the limits of the run itself; raises `UsageError` if it needs someone's consent."""

    own = planned.own_limits or Limits()
    if planned.limits.calls is not None or planned.limits.usd is not None:
        return own
    calls = call_bounds(planned.target.workflow)["at_most"]
    if calls > MOST_CALLS and not yes:
        raise UsageError(
            f"this review makes up to {calls} calls, more than {MOST_CALLS}: review fewer files or "
            "constraints, set a limit on calls or usd (--limit calls=N or usd=N), or add --yes"
        )
    return replace(own, calls=_most_calls(planned))


def _most_calls(planned: StartPlan) -> int:

    calls = call_bounds(planned.target.workflow)
    return int(calls["at_most"] + calls["again_at_most"])


def _print_plan(planned: StartPlan, selection: Selection, summary: str, out: Output) -> int:

    not_ready = planned.not_ready()
    if out.as_json:
        files = {"files": list(selection.files), "coverage": selection.coverage.to_json()}
        reasons = {name: describe(each) for name, each in not_ready.items()}
        out.json({**planned.to_json(), **files, "not_ready": reasons})
        return exits.USAGE if not_ready else exits.OK
    for path in selection.files:
        out.line(f"  {path}")
    for line in selection.coverage.lines():
        out.line(f"  {line}")
    dry_run = planned.dry_run()
    if dry_run is not None:
        out.table(dry_run.columns, dry_run.rows)
        for warning in dry_run.warnings:
            out.warn(warning)
        for note in dry_run.notes:
            out.prose(note, hang="  ")
    out.line(f"{summary}. Nothing was started.")
    _refuse_not_ready(not_ready, planned.target.workflow)
    return exits.OK


def _refuse_not_ready(not_ready: Mapping[str, Health], workflow: Workflow) -> None:
    """Raises `ConfigError` if an agent cannot answer."""
    jobs = {each.job for each in asks(workflow, {}) if each.agent in not_ready}
    # Who only fixes is replaced by itself; the reviewers stay.
    option = "fixer" if jobs == {AgentJob.WRITE} else "agent"
    refuse_not_ready(not_ready, by_name=False, option=option)


_FINISHED = frozenset(
    {Status.COMPLETED, Status.FINDINGS, Status.LIMIT, Status.NOT_CONVERGING, Status.INCOMPLETE}
)
"""Statuses of a review that was not cut off."""
REMEDY = (
    "the review is incomplete: make these files readable and covered by a constraint, or leave "
    "them out (.signoffignore)"
)


@dataclass(frozen=True)
class ReviewReport:
    """What a finished review has to show, and what it does with it."""

    project: Project
    details: RunDetails
    fix: bool = False
    patch: Path | None = None
    write: bool = False
    baseline: bool = False

    @cached_property
    def review(self) -> ReviewHistory:
        """What happened in it: the model that every view of a review shows."""
        return self.details.review or ReviewHistory()

    @cached_property
    def findings(self) -> list[Finding]:
        """The open findings: those that block first, then by file and line."""
        return self.review.open_findings()

    @cached_property
    def before(self) -> Mapping[str, str]:
        """The files as they were read."""
        return self.review.versions[0].files

    @property
    def now(self) -> Version:
        """The files as the review leaves them."""
        return self.review.versions[-1]

    @cached_property
    def rule_decisions(self) -> list[LastingDecision]:
        """The decisions that dismiss everything that a rule reports."""
        return FlowState(self.details.state).rule_decisions

    @cached_property
    def diff(self) -> str:
        """What fixes have changed."""
        return unified_diff(self.before, self.now.files)

    @cached_property
    def written(self) -> Mapping[str, list[str]]:
        """What became of the project's files; without a sign-off, they are written here."""
        if not self.write:
            return {}
        if self.review.written:
            return self.review.written
        return replace_files(self.project.home.root, *changed_files(self.before, self.now.files))

    @property
    def fixed_in_copies(self) -> list[Finding]:
        """The findings that were fixed, but not in the files of the project."""
        if not self.diff or self.written.get("written"):
            return []
        return [each for each in self.review.findings if each.status is FindingStatus.FIXED]

    @property
    def code(self) -> int:
        """The exit code."""
        if self.written.get("conflicts"):
            return exits.ERROR
        # A fix that is only in a copy leaves the file as it was found.
        in_files = [*self.findings, *self.fixed_in_copies]
        blocks = any(each.severity in self.review.block_on for each in in_files)
        if blocks and not self.baseline:
            return exits.FINDINGS
        return exits.OK if self.review.coverage.complete else exits.INCOMPLETE

    def act(self) -> None:
        """Writes what the user asked for."""
        if self.baseline:
            accept(self.project, self.findings)
        if self.patch is not None:
            _write_patch(self.patch, self.diff)

    def to_json(self) -> dict[str, Any]:
        """Returns it for programs."""

        facts = {
            "open": [finding_to_json(self.review, each) for each in self.findings],
            "rule_decisions": [each.to_json() for each in self.rule_decisions],
            "files": sorted(self.now.files),
            "coverage": self.review.coverage.to_json(),
            **({"diff": self.diff, **self.written} if self.diff else {}),
        }
        return {**report_to_json(self.details), "review": facts, "exit_code": self.code}

    def print(self, out: Output) -> None:
        """Prints it for humans."""
        if self.diff:
            out.line(self.diff)
        for group in group_equal(self.findings):
            finding = group[0]
            style = "red" if finding.severity in self.review.block_on else ""
            out.line(finding_line(self.now.content, finding), style=style)
            if not finding.omission:
                out.line(f"    > {' '.join(finding.quote.split())[:200]}")
            if len(group) > 1:
                out.prose(f"    {describe_equal(group)}", hang="    ")
        for decision in self.rule_decisions:
            out.line(_rule_line(self.review, decision))
        out.line(_summary(self.review, self.findings))
        print_coverage(self.review.coverage, out)
        self._print_fixes(out)
        if self.baseline and self.findings:
            out.line(f"accepted in {self.project.home.path.name}/decisions.yaml; commit it")
        out.line(f"details: signoff show {self.details.row.name}")

    def _print_fixes(self, out: Output) -> None:
        if self.fix and self.findings and not self.diff and self.code == exits.OK:
            out.line("nothing was fixed: none of the findings blocks")
        if conflicts := self.written.get("conflicts"):
            out.warn(conflict_text(conflicts))
        if self.written.get("written"):
            out.line(f"wrote {', '.join(self.written['written'])}")
        elif self.diff:
            out.line(f"{count(len(self.fixed_in_copies), 'finding')} fixed in copies, not written")
            out.line(self._how_to_apply)

    @property
    def _how_to_apply(self) -> str:
        if self.patch is not None:
            return f"no file was changed; the fixes are in {self.patch}: apply them with git apply"
        if self.write:
            folder = self.details.end.path if self.details.end is not None else "final"
            return f"no file was changed; the fixed files are in {folder} of the run directory"
        return "no file was changed; --write applies fixes, --patch FILE keeps them"


def print_review(project: Project, name: str, *, out: Output, **options: Any) -> int:
    """Prints the open findings of a review and how it ended; returns the exit code."""

    details = show(project, name)
    if details.row.status not in _FINISHED:
        return finish(details, out)
    report = ReviewReport(project, details, **options)
    report.act()
    if out.as_json:
        out.json(report.to_json())
    else:
        report.print(out)
    return report.code


def print_no_changes(selection: Selection, out: Output) -> int:
    """Prints why a change has nothing to review; returns the exit code.

    That is a success, unless a file could not be read.
    """
    coverage = selection.coverage
    code = exits.OK if coverage.complete else exits.INCOMPLETE
    if out.as_json:
        facts = {"open": [], "files": [], "coverage": coverage.to_json()}
        out.json({"review": facts, "exit_code": code})
    else:
        deleted = count(len(selection.deleted), "file")
        why = f"{deleted} deleted" if selection.deleted else "no file has changed"
        out.line(f"nothing to review{skipped_note(selection) or f': {why}'}")
        print_coverage(coverage, out)
    return code


def print_coverage(coverage: ReviewCoverage, out: Output) -> None:
    """Prints what a review has not read, and what to do if that makes it incomplete."""
    for line in coverage.lines():
        out.line(line, style="red" if line.startswith("not read") else "")
    if not coverage.complete:
        out.line(REMEDY, style="red")


def accept(project: Project, findings: Sequence[Finding]) -> None:
    """Records the decision that findings of today do not block later runs."""

    by, on = current_user(), date.today().isoformat()  # noqa: DTZ011  # the user's own calendar
    decisions = [LastingDecision.about_finding(f, BASELINE, by=by, on=on) for f in findings]
    add_decisions(project.home.path, decisions)


def _rule_line(review: ReviewHistory, decision: LastingDecision) -> str:
    """Returns a decision about a whole rule, and how much it covers in this run."""
    covered = sum(decision.covers(f.constraint, f.rule, f.path) for f in _dismissed(review))
    where = f" in {decision.files}" if decision.files else ""
    why = " ".join(decision.why.split())
    name = f"{decision.constraint}/{decision.rule}"
    return f"{name}{where} is dismissed: {count(covered, 'finding')} ({why})"


def _write_patch(path: Path, diff: str) -> None:
    try:
        # Programs that apply a patch skip its first lines, and reviews the file that says so.
        text = f"Generated by signoff. Do not edit.\n{diff}" if diff else diff
        path.write_text(text, "utf-8", newline="")
    except OSError as error:
        raise WriteFailed(f"cannot write {path}: {error.strerror or error}") from error


def _dismissed(review: ReviewHistory) -> list[Finding]:
    """Returns the dismissed findings that the files still have: a fix may have removed some."""
    placed = place(review.findings, review.versions[-1].content.text)
    return [
        each
        for each in review.findings
        if each.status is FindingStatus.DISMISSED
        and (each.omission or each.unverified or each.id in placed)
    ]


def _summary(review: ReviewHistory, findings: Sequence[Finding]) -> str:
    files = count(len(review.versions[-1].files), "file")
    dismissed = len(_dismissed(review))
    rest = f", {dismissed:,} dismissed" if dismissed else ""
    if not findings:
        known = any(each.status is not FindingStatus.IGNORED for each in review.findings)
        return f"no open findings in {files}{rest}" if known else f"no findings in {files}"
    block = sum(each.severity in review.block_on for each in findings)
    blocking_words = f"{block:,} blocking" if block else "none blocking"
    return f"{count(len(findings), 'finding')} in {files}, {blocking_words}{rest}"
