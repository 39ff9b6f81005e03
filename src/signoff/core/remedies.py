"""What fixes a problem, as values.

Errors and stop reasons carry these instead of commands, so that each surface can offer
them in its own form: a command to type, a button, a field of a JSON answer. An empty `run`
means the run that the problem is about.
"""

from __future__ import annotations

import re
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, Literal, Self

# Closed sets of values that are stored as JSON objects with a `kind`: the class name in snake case.
# Journals store it, so no class of such a set may be renamed.


_WORD_START = re.compile(r"(?<!^)(?=[A-Z])")


@dataclass(frozen=True)
class TaggedValue:
    """The base of a set: a direct subclass opens the set, the dataclasses below are its members."""

    kinds: ClassVar[dict[str, type[Any]]]

    def __init_subclass__(cls) -> None:
        if TaggedValue in cls.__bases__:
            cls.kinds = {}
        else:
            cls.kinds[snake_case(cls.__name__)] = cls

    def to_json(self) -> dict[str, Any]:
        """Returns a value as a JSON object; fields at their default are left out."""
        values = {each.name: (getattr(self, each.name), each.default) for each in fields(self)}
        changed = {
            name: value
            for name, (value, default) in values.items()
            if default is MISSING or value != default
        }
        return {"kind": snake_case(type(self).__name__), **changed}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Reads a value back; raises `ValueError` for a kind that is not in the set."""
        # JSON has no tuples, and a frozen value must not hold a list.
        values = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
        member = cls.kinds.get(str(values.pop("kind", "")))
        if member is None:
            raise ValueError(f"unknown kind {data.get('kind')!r}")
        value: Self = member(**values)
        return value


def snake_case(name: str) -> str:
    """Returns `raise_limit` for `RaiseLimit`."""
    return _WORD_START.sub("_", name).lower()


Scope = Literal["run", "step"]
"""Whose limit it is: the run's, or the one that the workflow sets for a step."""


class Remedy(TaggedValue):
    """Something the user can do about a problem."""


@dataclass(frozen=True)
class RaiseLimit(Remedy):
    """Raise a limit on usd, tokens, calls or seconds, then resume."""

    limit: str
    scope: Scope = "run"
    run: str = ""


@dataclass(frozen=True)
class RaiseRounds(Remedy):
    """Allow more rounds in the workflow, then resume with the changed definition."""

    run: str = ""
    file: str = ""
    """The file that sets the limit; empty if it is code."""
    setting: str = "max_iterations"
    """What the limit is called there."""


@dataclass(frozen=True)
class Resume(Remedy):
    """Resume the run, perhaps with a changed definition, another agent or another target."""

    run: str = ""
    adopt: bool = False
    agent: str = ""
    """The agent to replace; empty to keep all."""
    instead: str = ""
    """Who answers in its stead; empty where the user chooses."""
    target: bool = False
    """Whether the user has to name the workflow's new target."""
    external: bool = False
    """Whether its work is handed out to an outside worker from here on."""


@dataclass(frozen=True)
class ResumeDue(Remedy):
    """Resume every run whose time has come."""

    after: float | None = None
    """When this run's time comes, in seconds since 1970."""


@dataclass(frozen=True)
class StartWorker(Remedy):
    """Start a worker that can drive the run."""

    missing: tuple[str, ...] = ()
    """The capabilities that no worker has; empty if none is running."""


@dataclass(frozen=True)
class StartRun(Remedy):
    """Start a run."""

    again: bool = False
    """Whether it replaces a run that has ended and cannot be resumed."""
    run: str = ""
    """The run whose workflow, parameters and options to use; empty where the user chooses."""


@dataclass(frozen=True)
class CancelRun(Remedy):
    """Cancel the run."""

    run: str = ""


@dataclass(frozen=True)
class ShowRun(Remedy):
    """Look at the run."""

    run: str = ""


@dataclass(frozen=True)
class WatchRun(Remedy):
    """Follow the run while another process drives it."""

    run: str = ""


@dataclass(frozen=True)
class TakeWork(Remedy):
    """Ask for the run's next piece of external work."""

    run: str = ""


@dataclass(frozen=True)
class ShowInbox(Remedy):
    """Look at one pending request, or at all of a run, or at all there are."""

    item: int | None = None
    run: str = ""


@dataclass(frozen=True)
class AnswerRequest(Remedy):
    """Answer a request with one of these values, or with any text if none are listed."""

    item: int | str
    """Its number, or the name of the run that has only this one."""
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class PassOption(Remedy):
    """Pass this option to the use case that was called."""

    option: str
    value: str = ""
    """What kind of value it takes, such as FILE; empty for a switch."""


@dataclass(frozen=True)
class InitProject(Remedy):
    """Create the project home."""


@dataclass(frozen=True)
class TrustProject(Remedy):
    """Look at the lines of the project that need trust, and trust them."""


@dataclass(frozen=True)
class CheckSetup(Remedy):
    """Check the setup, which tells what each agent needs."""


@dataclass(frozen=True)
class ShowSettings(Remedy):
    """Look at the settings and where each comes from."""


@dataclass(frozen=True)
class OpenPage(Remedy):
    """Open the web page of the project."""


@dataclass(frozen=True)
class CreateToken(Remedy):
    """Create a token for the program that calls the web server."""

    scope: str = ""


@dataclass(frozen=True)
class SignOnPage(Remedy):
    """Approve a request on the web page, with a passkey."""

    item: int


@dataclass(frozen=True)
class AddPasskey(Remedy):
    """Register a passkey."""


@dataclass(frozen=True)
class Login(Remedy):
    """Log in to an agent's program or service."""

    program: str
    how: str = ""
    """What its vendor provides for that, such as a command of theirs or a variable for the key."""


@dataclass(frozen=True)
class Install(Remedy):
    """Install one of signoff's extras."""

    extra: str


@dataclass(frozen=True)
class PullModel(Remedy):
    """Download one of the local models."""

    model: str


@dataclass(frozen=True)
class ChooseModel(Remedy):
    """Use one of the models that are there."""

    available: tuple[str, ...] = ()


@dataclass(frozen=True)
class SetUpDatabase(Remedy):
    """Let the owner of the database create signoff's tables and grant rights on them."""


@dataclass(frozen=True)
class SetUpStore(Remedy):
    """Let an administrator create or upgrade the store's tables and grant rights on them."""


@dataclass(frozen=True)
class SetPassword(Remedy):
    """Give the password of the store's database where its driver looks for it."""


@dataclass(frozen=True)
class AddFallback(Remedy):
    """Name an agent that answers when this one is busy or out of quota."""

    agent: str = ""


@dataclass(frozen=True)
class ListBackups(Remedy):
    """List the backups of the user's database."""
