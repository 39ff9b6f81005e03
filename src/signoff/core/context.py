"""The context of a handler: which step it runs, the state so far, and the effects it can request.

The context is plain data plus one port. Its effect methods build a value and pass it to the
port, so handlers run unchanged under the engine, in a test, or elsewhere.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Protocol, TypeVar, overload

from signoff.core import effects as fx
from signoff.core.checked import CheckedCall, CheckedReply, Otherwise
from signoff.core.errors import UsageError
from signoff.core.requests import Answer, Request
from signoff.core.spend import Spend

T = TypeVar("T")


class Chance(Protocol):
    """A random number generator, such as `random.Random`."""

    def random(self) -> float:
        """Returns a number from 0 up to 1."""

    def uniform(self, a: float, b: float) -> float:
        """Returns a number between two others."""

    def randint(self, a: int, b: int) -> int:
        """Returns an integer between two others, both included."""

    def choice(self, seq: Sequence[T]) -> T:
        """Returns a random element."""

    def shuffle(self, x: list[Any]) -> None:
        """Shuffles a list in place."""


ItemHandler = Callable[["StepContext", Any], Any]
"""`(ctx, item) -> result`, plain or async; the result is stored."""

CacheGroup = Callable[[Any], str | None]
"""`(item) -> group`: items of one group send prompts that begin alike; None is in no group."""

OnFailure = Literal["raise", "keep"]


@dataclass(frozen=True, slots=True)
class Failure:
    """The result of a failed fan-out item with `on_failure="keep"`."""

    error: str
    index: int
    attempts: int = 1


class EffectPort(Protocol):
    """Performs what a context asks for."""

    def perform(self, ctx: StepContext, effect: fx.Effect) -> Awaitable[Any]:
        """Performs one effect durably and returns its reply."""

    def ask_checked(self, ctx: StepContext, call: CheckedCall[T]) -> Awaitable[CheckedReply[T]]:
        """Asks until an answer is accepted, or a human decides about it."""

    def map(self, ctx: StepContext, fan: FanOutCall) -> Awaitable[list[Any]]:
        """Runs a fan-out, each item in a scope of its own."""

    def now(self, ctx: StepContext) -> float:
        """Returns the time, the same on every replay."""

    def was_requested(self, ctx: StepContext, key: str) -> bool:
        """Whether the journal has a request with this key: the handler is being replayed."""

    def park(self, ctx: StepContext, until: float, key: str) -> Awaitable[None]:
        """Suspends the run until a time."""

    def random(self, ctx: StepContext) -> Chance:
        """Returns a random number generator that yields the same on every replay."""

    def progress(self, ctx: StepContext, message: str) -> None:
        """Passes a message to the observers; nothing is recorded."""

    def log(self, ctx: StepContext, text: str) -> None:
        """Records a line of the run's log, once."""

    def spend(self) -> Spend:
        """Returns what the run has cost so far."""

    def before_plain_code(self) -> Awaitable[None]:
        """Prepares for code that may change the outside world without an effect."""


@dataclass(frozen=True, slots=True)
class FanOutCall:
    """One call of `map`."""

    items: Sequence[Any]
    handler: ItemHandler
    key: str
    concurrency: int | None
    retries: int
    on_failure: OnFailure | Literal["ask"]
    """`ask` keeps failures for a human to decide about, and raises what an operator must fix."""
    otherwise: Otherwise[list[Any]] | None = None
    cache_group: CacheGroup | None = None
    feedback: Sequence[str] = ()
    tried: int = 0


@dataclass(frozen=True, slots=True)
class StepContext:
    """What a handler knows about its run, and its only way to request effects."""

    step_id: str
    """The current step."""
    workflow_params: Mapping[str, Any] = field(default_factory=dict)
    """What the run was started with; in a step with instructions, with what its worker reported."""
    step_state: Mapping[str, Any] = field(default_factory=dict)
    """The run's state so far, read-only; a handler returns its changes."""
    run: str = ""
    """The run's name."""
    run_key: str = ""
    """Distinguishes this run from every other, even from one of the same name elsewhere."""
    visit: int = 1
    """How many times this step has been entered, this time included."""
    iteration: int = 1
    """The current round of the run."""
    attempt: int = 1
    """Which try of this visit it is."""
    feedback: str | None = None
    """Why the previous attempt fell short, or what a human wrote about it."""
    scope: str = ""
    """The fan-out item this context belongs to, as a path; empty at the top."""
    result: Any = None
    """What the handler returned, for conditions that look at it."""
    state_before: Mapping[str, Any] = field(default_factory=dict)
    """For postconditions, the run's state before the step; `step_state` is the one after it."""
    previous_answers: Mapping[str, str] = field(default_factory=dict)
    """On a retry, what agents answered in the attempt before, by key."""
    port: EffectPort | None = field(default=None, repr=False, compare=False)
    """What performs effects; None in a context built by hand."""

    @overload
    def ask(
        self, agent: str, prompt: str, *, read: None = None, **rest: Any
    ) -> Awaitable[fx.Reply]: ...

    @overload
    def ask(
        self, agent: str, prompt: str, *, read: Callable[[fx.Reply], T], **rest: Any
    ) -> Awaitable[CheckedReply[T]]: ...

    def ask(
        self,
        agent: str,
        prompt: str,
        *,
        key: str = "ask",
        read: Callable[[fx.Reply], T] | None = None,
        retries: int = 1,
        otherwise: Otherwise[T] | Request | None = None,
        salvage: Callable[[str], Sequence[str]] | None = None,
        show_previous: bool = True,
        system: str | None = None,
        model: str | None = None,
        schema: Mapping[str, Any] | None = None,
        workspace: str | None = None,
        edit: bool = False,
        files: Mapping[str, str] | None = None,
        about: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_crash: fx.OnCrash | str | None = None,
        **options: Any,
    ) -> Awaitable[Any]:
        """Asks an agent and returns its reply, once: a replay gets the recorded one.

        With `read`, the reply is checked: `read(reply)` returns its value or raises
        `AgentBadOutput` with every problem. The agent is asked up to `retries` times more,
        shown its previous answer (unless `show_previous` is off) and the problems; then a
        human chooses from `otherwise`, or the error is raised where there is none. The
        result is a `CheckedReply`. `salvage(text)` keeps what counts of an answer that `read`
        cannot use at all, such as one that was cut off, and returns lines about it for the agent.

        `files` are texts the agent works on in a fresh folder of their own, in place of a
        `workspace`; with `edit`, the reply's `contents` are the edited texts. `about` has in
        plain values what the prompt says in words, for an outside worker. A `ProductPrompt`
        may carry a system prompt, a schema, and the length of the part it shares with others.
        """
        if files and workspace is not None:
            raise UsageError("ask() takes files= or workspace=, not both")
        own_schema, shared, stated = False, 0, None
        if isinstance(prompt, fx.ProductPrompt):
            own_schema, shared, stated = schema is None, prompt.shared, prompt.stated
            system, schema = system or prompt.system, schema or prompt.schema
        # Each call gets a fresh working copy, so working on it twice does no harm.
        risky = edit and not files
        crash = (
            fx.OnCrash(on_crash) if on_crash else (fx.OnCrash.ASK if risky else fx.OnCrash.RERUN)
        )
        request = fx.AgentRequest(
            str(prompt), system, model, dict(schema or {}), workspace, edit, options,
            dict(files or {}), about=dict(about or {}), shared=shared,
        )  # fmt: skip
        payload = {"agent": str(agent), **request.to_json()}
        material = _material(prompt)
        effect = fx.Effect(
            fx.EffectKind.ASK, key, payload, crash, timeout, material, own_schema, stated
        )
        if read is None:
            return self._perform(effect)
        call = CheckedCall(effect, read, retries, _otherwise(otherwise), salvage, show_previous)
        return self._port().ask_checked(self, call)

    def command(
        self,
        argv: Sequence[str],
        *,
        key: str = "command",
        cwd: str | None = None,
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
        pass_env: Sequence[str] = (),
        timeout: float | None = None,
        on_crash: fx.OnCrash | str = fx.OnCrash.ASK,
    ) -> Awaitable[fx.CommandResult]:
        """Runs a program in a process group of its own and returns what it printed.

        It sees the ordinary variables of this process's environment, those that `pass_env`
        names, and `env`.
        """
        if isinstance(argv, str) or not argv:
            raise UsageError("command() takes a list: the program, then its arguments")
        if isinstance(pass_env, str):
            raise UsageError("command() takes pass_env as a list of names")
        request = {
            "argv": [str(a) for a in argv],
            "cwd": cwd,
            "stdin": stdin,
            "env": dict(env) if env else None,
            "pass_env": list(pass_env) or None,
        }
        payload = {name: value for name, value in request.items() if value is not None}
        return self._perform(
            fx.Effect(fx.EffectKind.COMMAND, key, payload, fx.OnCrash(on_crash), timeout)
        )

    def write(self, path: str, text: str, *, key: str | None = None) -> Awaitable[fx.WrittenFile]:
        """Writes a file into the run directory, atomically."""
        payload = {"path": path, "text": str(text)}
        key = key or _file_key("write", path)
        return self._perform(fx.Effect(fx.EffectKind.WRITE, key, payload, material=_material(text)))

    @overload
    def read(
        self, path: str, *, key: str | None = None, missing_ok: Literal[False] = False
    ) -> Awaitable[fx.FileRead]: ...

    @overload
    def read(
        self, path: str, *, key: str | None = None, missing_ok: bool
    ) -> Awaitable[fx.FileRead | None]: ...

    def read(
        self, path: str, *, key: str | None = None, missing_ok: bool = False
    ) -> Awaitable[fx.FileRead | None]:
        """Reads a file of the run directory, once: a replay gets the recorded text.

        Raises `UnreadableFile` if it is missing, unless `missing_ok`; None is returned then. It is
        also raised for a file that is not UTF-8 text, too large, or contains a known secret.
        """
        payload = {"path": path, **({"missing_ok": True} if missing_ok else {})}
        return self._perform(fx.Effect(fx.EffectKind.READ, key or _file_key("read", path), payload))

    def wait(self, request: Request, *, key: str = "wait") -> Awaitable[Answer]:
        """Asks a human; the run may wait here for days, and the process may exit."""
        form = {**request.to_json(), "prompt": str(request.prompt)}
        material = _material(request.prompt)
        return self._perform(fx.Effect(fx.EffectKind.WAIT, key, form, material=material))

    def map(
        self,
        items: Sequence[Any],
        handler: ItemHandler,
        *,
        key: str = "map",
        concurrency: int | None = None,
        retries: int = 0,
        on_failure: OnFailure = "raise",
        otherwise: Otherwise[list[Any]] | Request | None = None,
        cache_group: CacheGroup | None = None,
    ) -> Awaitable[list[Any]]:
        """Runs the handler for all items at once and returns their results in order.

        Each item is a scope of its own: it may ask, wait and fail without touching its
        siblings. A finished item is never run again; failed ones are retried alone, with the
        reason in their `ctx.feedback`. With `on_failure="keep"`, the result of a failed item is a
        `Failure`; otherwise `ItemsFailed` is raised after all have ended. With `otherwise`, a
        human chooses whether failed items are retried; those that are not become a `Failure`.

        `cache_group` names the items whose prompts begin alike. The first item of each group goes
        ahead, and the others start once its agent begins to answer, with its prompt cache filled.
        """
        decision = _otherwise(otherwise)
        fan = FanOutCall(
            items, handler, key, concurrency, retries, on_failure, decision, cache_group
        )
        return self._port().map(self, fan)

    def park(self, until: datetime | timedelta, *, key: str = "park") -> Awaitable[None]:
        """Puts the run to sleep until a time, or for a while; `resume --due` wakes it.

        A time needs a time zone, as `ctx.now()` has: without one, the hour would depend on
        where the run is resumed.
        """
        match until:
            case timedelta():
                moment = self._port().now(self) + until.total_seconds()
            case datetime() if until.tzinfo is not None:
                moment = until.timestamp()
            case datetime():
                raise UsageError(
                    f"ctx.park({until!r}) has no time zone; "
                    "give it one (tzinfo=...), or start from ctx.now(), which is UTC"
                )
            case _:
                raise UsageError(f"ctx.park takes a timedelta or a datetime, not {until!r}")
        return self._port().park(self, moment, key)

    def now(self) -> datetime:
        """Returns the time in UTC at the first call; replays get the same."""
        return datetime.fromtimestamp(self._port().now(self), UTC)

    def random(self) -> Chance:
        """Returns a random number generator that yields the same on every replay."""
        return self._port().random(self)

    def progress(self, message: str) -> None:
        """Shows a message to everyone who watches the run; nothing is recorded."""
        if self.port is not None:
            self.port.progress(self, message)

    def log(self, text: str) -> None:
        """Adds a line to the run's log, once: a replay does not repeat it.

        The line is shown while the run is driven, and it is part of the journal. Known secrets
        are removed from it, and a very long one is cut.
        """
        if self.port is not None:
            self.port.log(self, str(text))

    def in_item(
        self, scope: str, attempt: int, feedback: str | None, answers: Mapping[str, str]
    ) -> StepContext:
        """Returns the context of one attempt at a fan-out item."""
        return replace(
            self, scope=scope, attempt=attempt, feedback=feedback, previous_answers=answers
        )

    def _perform(self, effect: fx.Effect) -> Awaitable[Any]:
        return self._port().perform(self, effect)

    def _port(self) -> EffectPort:
        if self.port is None:
            raise UsageError(
                "this StepContext was built by hand and can perform no effects; "
                "run the workflow with signoff.run(...), with a scripted agent in tests"
            )
        return self.port


def _file_key(verb: str, path: str) -> str:
    # Brackets mark fan-out items, so a key holds none.
    label = path.replace("[", "(").replace("]", ")")
    return f"{verb}:{label}"


def _material(prompt: str) -> Any:
    return prompt.material if isinstance(prompt, fx.ProductPrompt) else None


def _otherwise(request: Otherwise[T] | Request | None) -> Otherwise[T] | None:
    """Wraps a fixed request as one that may depend on the last answer."""
    return Otherwise(lambda _last: request) if isinstance(request, Request) else request
