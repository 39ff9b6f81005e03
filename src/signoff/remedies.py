"""What fixes a problem, as values.

Errors and stop reasons carry these instead of commands, so that each surface can offer
them in its own form: a command to type, a button, a field of a JSON answer. An empty `run`
means the run that the problem is about.
"""

from __future__ import annotations

from typing import Literal

from signoff.tagged_json import Tagged

Scope = Literal["run", "step"]
"""Whose limit it is: the run's, or the one that the workflow sets for a step."""


class Remedy(Tagged):
    """Something the user can do about a problem."""


class RaiseLimit(Remedy):
    """Raise a limit on usd, tokens, calls or seconds, then resume."""

    limit: str
    scope: Scope = "run"
    run: str = ""


class RaiseRounds(Remedy):
    """Allow more rounds in the workflow, then resume with the changed definition."""

    run: str = ""
    file: str = ""
    """The file that sets the limit; empty if it is code."""
    setting: str = "max_iterations"
    """What the limit is called there."""


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


class ResumeDue(Remedy):
    """Resume every run whose time has come."""

    after: float | None = None
    """When this run's time comes, in seconds since 1970."""


class StartWorker(Remedy):
    """Start a worker that can drive the run."""

    missing: tuple[str, ...] = ()
    """The capabilities that no worker has; empty if none is running."""


class StartRun(Remedy):
    """Start a run."""

    again: bool = False
    """Whether it replaces a run that has ended and cannot be resumed."""
    run: str = ""
    """The run whose workflow, parameters and options to use; empty where the user chooses."""


class CancelRun(Remedy):
    """Cancel the run."""

    run: str = ""


class ShowRun(Remedy):
    """Look at the run."""

    run: str = ""


class WatchRun(Remedy):
    """Follow the run while another process drives it."""

    run: str = ""


class TakeWork(Remedy):
    """Ask for the run's next piece of external work."""

    run: str = ""


class ShowInbox(Remedy):
    """Look at one pending request, or at all of a run, or at all there are."""

    item: int | None = None
    run: str = ""


class AnswerRequest(Remedy):
    """Answer a request with one of these values, or with any text if none are listed."""

    item: int | str
    """Its number, or the name of the run that has only this one."""
    options: tuple[str, ...] = ()


class PassOption(Remedy):
    """Pass this option to the use case that was called."""

    option: str
    value: str = ""
    """What kind of value it takes, such as FILE; empty for a switch."""


class InitProject(Remedy):
    """Create the project home."""


class TrustProject(Remedy):
    """Look at the lines of the project that need trust, and trust them."""


class CheckSetup(Remedy):
    """Check the setup, which tells what each agent needs."""


class ShowSettings(Remedy):
    """Look at the settings and where each comes from."""


class OpenPage(Remedy):
    """Open the web page of the project."""


class CreateToken(Remedy):
    """Create a token for the program that calls the web server."""

    scope: str = ""


class SignOnPage(Remedy):
    """Approve a request on the web page, with a passkey."""

    item: int


class AddPasskey(Remedy):
    """Register a passkey."""


class Login(Remedy):
    """Log in to an agent's program or service."""

    program: str
    how: str = ""
    """What its vendor provides for that, such as a command of theirs or a variable for the key."""


class Install(Remedy):
    """Install one of signoff's extras."""

    extra: str


class PullModel(Remedy):
    """Download one of the local models."""

    model: str


class ChooseModel(Remedy):
    """Use one of the models that are there."""

    available: tuple[str, ...] = ()


class SetUpDatabase(Remedy):
    """Let the owner of the database create signoff's tables and grant rights on them."""


class SetUpStore(Remedy):
    """Let an administrator create or upgrade the store's tables and grant rights on them."""


class SetPassword(Remedy):
    """Give the password of the store's database where its driver looks for it."""


class AddFallback(Remedy):
    """Name an agent that answers when this one is busy or out of quota."""

    agent: str = ""


class ListBackups(Remedy):
    """List the backups of the user's database."""
