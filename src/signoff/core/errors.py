"""Every error signoff raises, as one tree, sorted by who has to act.

SignoffError
├── AuthorError                 the author of the workflow
│   ├── InvalidWorkflow         the definition has problems (all of them listed)
│   ├── InvalidParams           parameters do not fit what the steps declare
│   ├── InvalidTemplate         a template cannot be rendered (all problems listed)
│   ├── HandlerFailed           a handler raised
│   ├── BadHandlerResult        a handler did not return (Outcome, dict)
│   ├── UnmappedOutcome         an outcome has no edge
│   ├── NotSerialisable         a value cannot be stored as JSON
│   ├── NotDeterministic        a replayed handler made a different request
│   ├── DuplicateKey            two concurrent effects share a key
│   └── UnsafePath              a path leaves the folder it may write to
├── OperatorError               the user who runs it
│   ├── UsageError              the command or call is wrong
│   │   ├── UnknownName         a run, workflow, step, item or agent that does not exist
│   │   │   └── RunMoved        a run that was moved to another store
│   │   ├── InvalidRunName      a text that cannot be the name of a run
│   │   ├── NameTaken           a run of that name exists
│   │   ├── RunEnded            the run has ended, so this can no longer be done
│   │   ├── NotTrusted          the project says what its user has not agreed to (lines listed)
│   │   └── InvalidAnswer       an answer does not fit its request
│   │       ├── RequestClosed   the request is no longer open
│   │       ├── PresenceRequired    the approval needs the signature of a passkey
│   │       └── SignatureRefused    the signature of a passkey is not valid for this
│   ├── StaleApproval           the content changed after the approver saw it
│   ├── FilesChanged            files of the project changed while a run worked on copies of them
│   ├── RunBusy                 another process is driving the run
│   ├── DefinitionChanged       the workflow is not the one the run was started with
│   ├── UnreadableFile          a file of a run is missing, or cannot be recorded as text
│   ├── ConfigError             a settings file is wrong
│   ├── NotAllowed              a safety rule forbids it
│   ├── ProviderError           a provider of a profile cannot do its work
│   └── StoreError              the database
│       ├── StoreBusy           locked by another process for too long
│       ├── StoreDamaged        not readable as a signoff database
│       ├── StoreTooNew         written by a newer signoff
│       └── WriteFailed         disk full, read-only, input/output error
├── AgentError                  an agent
│   ├── AgentTransient          a retry may help, and is made automatically
│   ├── AgentQuota              out of quota, until a time when one is stated
│   ├── AgentAuth               not logged in
│   ├── AgentRefused            permission denied to the agent
│   ├── AgentBadRequest         the request can never work as it is
│   │   └── ModelMissing        the agent does not have the model (those it has are listed)
│   ├── AgentBadOutput          the reply does not match the request
│   ├── AgentTimeout            no reply in time
│   └── AgentStopped            the run was stopped before there was a reply
├── StepFailed                  a step reports that its work is not good enough
├── ItemsFailed                 some items of a fan-out failed; results of the others are stored
├── CommandFailed               a program could not be started, or took too long
└── EngineError                 signoff itself
    └── LeaseLost               another process took over the run

Expected ends (fail, wait, limit, park) are values of `signoff.core`, never exceptions.
The first line of a class's docstring is its default message.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from signoff.core.remedies import ChooseModel, Remedy, TrustProject

Remedies = Remedy | tuple[Remedy, ...]
"""One remedy, or several with the most likely first."""

SHOWN_NAMES = 12
"""Names that an error about an unknown one lists."""


class SignoffError(Exception):
    """Something went wrong in signoff."""

    remedies: tuple[Remedy, ...] = ()
    """What fixes it, most likely first; each surface has its own words for them."""

    def __init__(self, message: str = "", *, remedy: Remedies = ()) -> None:
        super().__init__(message or (type(self).__doc__ or "").splitlines()[0])
        self.remedies = remedy if isinstance(remedy, tuple) else (remedy,)


class AuthorError(SignoffError):
    """The author of the workflow has to change it."""


@dataclass(frozen=True)
class Problem:
    """One mistake in a definition: where it is, what is wrong, and what would be right."""

    where: str
    what: str
    remedy: str = ""
    step: str = ""
    """The step it is about, if any."""

    def __str__(self) -> str:
        """Returns the problem on one line."""
        tail = f" ({self.remedy})" if self.remedy else ""
        return f"{self.where}: {self.what}{tail}" if self.where else f"{self.what}{tail}"


class InvalidWorkflow(AuthorError):
    """The workflow definition has problems."""

    noun = "workflow"
    """What has the problems, for the message."""

    def __init__(self, name: str, problems: Iterable[Problem], *, remedy: Remedies = ()) -> None:
        self.name = name
        self.problems: Sequence[Problem] = tuple(problems)
        count = f"{len(self.problems)} problem{'' if len(self.problems) == 1 else 's'}"
        listed = "".join(f"\n  - {each}" for each in self.problems)
        super().__init__(f"{self.noun} {name!r} has {count}:{listed}", remedy=remedy)


class _ListedProblems(AuthorError):
    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: Sequence[Problem] = tuple(problems)
        super().__init__("; ".join(map(str, self.problems)))


class InvalidParams(_ListedProblems):
    """The parameters do not fit what the steps declare."""


class InvalidTemplate(_ListedProblems):
    """The template cannot be rendered."""


class HandlerFailed(AuthorError):
    """A handler raised; fix it and resume the run."""


class BadHandlerResult(AuthorError):
    """A handler must return (Outcome, dict)."""


class UnmappedOutcome(AuthorError):
    """A step ended with an outcome that has no edge."""


class NotSerialisable(AuthorError):
    """A value cannot be stored; use strings, numbers, booleans, None, lists and dicts."""


class NotDeterministic(AuthorError):
    """This handler is not deterministic: on replay it made a different request than before."""


class DuplicateKey(AuthorError):
    """Two concurrent effects in one scope share a key; give each its own key=."""


class UnsafePath(AuthorError):
    """The path leaves the directory it may write to."""


class OperatorError(SignoffError):
    """The user has to act."""


class UsageError(OperatorError):
    """The command or call is wrong."""


class NotTrusted(UsageError):
    """The project is not trusted."""

    def __init__(self, home: str, lines: Sequence[str], count: int, *, asks: bool = True) -> None:
        self.home, self.lines, self.count = home, tuple(lines), count
        """The home of the project, its first lines that need trust, and how many there are."""
        self.asks = asks
        """Whether the user may be asked; commands that only read never do."""
        self.declined = False
        """Whether the user was asked and said no."""
        more = [f"and {count - len(lines)} more"] if count > len(lines) else []
        listed = "\n".join(f"  {each}" for each in [*lines, *more])
        super().__init__(
            f"{home} is not trusted: these lines can run code here, send something elsewhere, "
            f"replace your own settings or raise limits\n{listed}",
            remedy=TrustProject(),
        )


class UnknownName(UsageError):
    """The name is unknown."""

    def __init__(self, kind: str, name: str, known: Iterable[str] = ()) -> None:
        self.kind, self.name, self.known = kind, name, tuple(known)
        super().__init__(f"unknown {kind} {name!r}")

    def __str__(self) -> str:
        """Adds the valid names, the most similar first."""
        # Built only when it is printed: many of these are caught, and comparing names takes time.
        from difflib import get_close_matches

        message = super().__str__()
        if not self.known:
            return message
        names = list(dict.fromkeys([*get_close_matches(self.name, self.known), *self.known]))
        more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
        return f"{message}; valid names: {', '.join(names[:SHOWN_NAMES])}{more}"


class RunMoved(UnknownName):
    """The run was moved to another store."""

    def __init__(self, name: str, target: str) -> None:
        super().__init__("run", name)
        self.target = target
        self.args = (f"run {name!r} was moved to {target}; use that database",)


class InvalidRunName(UsageError):
    """This cannot be the name of a run."""


class NameTaken(UsageError):
    """A run of that name exists; choose another name, or resume that run."""


class InvalidAnswer(UsageError):
    """The answer does not fit the request."""


class RequestClosed(InvalidAnswer):
    """The request has been answered or withdrawn, or its deadline has passed."""


class PresenceRequired(InvalidAnswer):
    """The approval needs the signature of a passkey."""


class SignatureRefused(InvalidAnswer):
    """The signature of a passkey is not valid for this."""


class RunEnded(UsageError):
    """The run has already ended."""


class StaleApproval(OperatorError):
    """The content has changed since you saw it; look at it again before approving."""


class FilesChanged(OperatorError):
    """Files of the project changed while the run worked on copies of them."""


class RunBusy(OperatorError):
    """Another process is driving this run."""


class DefinitionChanged(OperatorError):
    """The workflow has changed since the run was started."""


class UnreadableFile(OperatorError):
    """A file of the run is missing, or its content cannot be recorded as text."""


class ConfigError(OperatorError):
    """A settings file is wrong."""


class NotAllowed(OperatorError):
    """A safety rule forbids this."""


class ProviderError(OperatorError):
    """A provider cannot do its work; check its configuration."""


class StoreError(OperatorError):
    """The database cannot be used."""


class StoreBusy(StoreError):
    """The database was locked by another process for too long; try again."""


class StoreDamaged(StoreError):
    """The database file is damaged; restore a backup or move it away."""


class StoreTooNew(StoreError):
    """The database was written by a newer signoff; upgrade signoff."""


class WriteFailed(StoreError):
    """The database could not be written; nothing after the last commit counts."""


class AgentError(SignoffError):
    """An agent could not answer."""

    agent: str = ""
    """The agent's name, set by the engine."""
    model: str = ""
    """The model that was requested, if any."""
    status: int | None = None
    """The HTTP status of the reply, if the agent is a server."""
    kind: str = ""
    """The class of the error that this one stands for; empty for an error of its own."""


class AgentTransient(AgentError):
    """The agent failed, but a retry may help."""

    def __init__(
        self, message: str = "", *, after: float | None = None, remedy: Remedies = ()
    ) -> None:
        self.after = after
        """Seconds after which the server allows a retry; None if it did not say."""
        super().__init__(message, remedy=remedy)


class AgentQuota(AgentError):
    """The agent is out of quota."""

    def __init__(self, message: str = "", *, until: datetime | None = None) -> None:
        self.until = until
        super().__init__(message)


class AgentAuth(AgentError):
    """The agent is not logged in."""


class AgentRefused(AgentError):
    """The agent was denied a permission it needed."""


class AgentBadRequest(AgentError):
    """The agent cannot answer this request as it is."""


class ModelMissing(AgentBadRequest):
    """The agent does not have this model."""

    def __init__(
        self,
        message: str = "",
        *,
        model: str = "",
        available: Iterable[str] = (),
        remedy: Remedies = (),
    ) -> None:
        from difflib import get_close_matches

        names = tuple(available)
        close = get_close_matches(model, names)
        self.model, self.available = model, tuple(dict.fromkeys([*close, *names]))
        super().__init__(message, remedy=remedy or ChooseModel(self.available))


class AgentBadOutput(AgentError):
    """The agent's reply does not match the request."""

    def __init__(
        self,
        message: str = "",
        *problems: str,
        answer: str = "",
        value: object = None,
        usable: bool = False,
        partial: str = "",
    ) -> None:
        """`problems` lists everything wrong with the `answer`; `value` is what could be parsed.

        A `usable` answer counts as it is when retries did not help. `partial` is the beginning of
        an answer that was cut off, for callers that can do something with half a text.
        """
        super().__init__(message or "; ".join(problems))
        self.problems = problems or (str(self),)
        self.answer, self.value = answer, value
        self.usable, self.partial = usable, partial


class AgentTimeout(AgentError):
    """The agent did not answer in time."""


class AgentStopped(AgentError):
    """The call was stopped together with its run."""


class StepFailed(SignoffError):
    """The work of the step is not good enough."""


class ItemsFailed(SignoffError):
    """Some items of a fan-out failed."""

    def __init__(self, key: str, failures: dict[int, str], total: int) -> None:
        self.key, self.failures, self.total = key, failures, total
        first = next(iter(failures.values()), "")
        others = "; the others are finished" if len(failures) < total else ""
        alike = len(failures) > 1 and set(failures.values()) == {first}
        super().__init__(
            f"{len(failures)} of {total} items of {key!r} failed{others}. "
            f"{'Each' if alike else 'First'}: {first}"
        )


class CommandFailed(SignoffError):
    """The program could not be run."""


class EngineError(SignoffError):
    """signoff itself is at fault; please report this."""


class LeaseLost(EngineError):
    """Another process took over this run; this one stops."""
