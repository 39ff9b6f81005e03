"""Programs in process groups of their own, with no orphans.

The whole group of a cancelled or timed-out program, and every process it detached, is asked to
end and then killed, and is gone before the caller continues. A group that a dead runner left
behind is found by its pid and start time, which are recorded when it starts.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import repeat
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from signoff.core.effects import CommandResult, EffectKind
from signoff.core.errors import CommandFailed
from signoff.core.run_state import RunState
from signoff.runtime.environment import command_environment
from signoff.runtime.owner import birth_of
from signoff.runtime.ports import Call, idempotency_key

if TYPE_CHECKING:
    import psutil  # type: ignore[import-untyped]  # it brings no types


# Finds orphans: processes that a dead runner left behind, and daemons that left their group.
#
# The processes of a call or command carry a mark in their environment, which children inherit. How
# it begins follows from the effect alone, so the next runner knows it even if the last one died
# before it could record the process. How it ends is random: a runner that was stopped and has lost
# its run must not end what the next one has started for the same effect. Programs that cleared
# their environment are found as descendants of the program that was started, as long as that one
# lives.


MARK = "SIGNOFF_CALL"
"""The variable that carries the mark."""

_LOOK_SECONDS = 0.05
_LOOKS = 100


def mark_of(run_key: str, step: str, visit: int, attempt: int, effect: str) -> str:
    """Returns how the marks of an effect's processes begin, whoever drives the run."""
    return idempotency_key(run_key, step, visit, attempt, effect)[:16]


def call_mark(call: Call) -> str:
    """Returns a new mark for the processes of a call or command."""
    own = uuid4().hex[:16]
    if not call.run_key:
        # It belongs to no run, so no runner resumes it.
        return own
    effect = mark_of(call.run_key, call.step, call.visit, call.step_attempt, call.effect)
    return f"{effect}.{own}"


async def end_orphans(*marks: str, also: Iterable[psutil.Process] = ()) -> None:
    """Ends the processes with one of the marks, and those in `also`: politely, then for good.

    The mark of an effect stands for all that begin with it.
    """
    known = set(also)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for _ in range(_LOOKS):
            # Searched again each time: until it is gone, a program may start others.
            known.update(await asyncio.to_thread(marked, *marks))
            left = [process for process in known if lives(process)]
            if not left:
                return
            send(left, number)
            await asyncio.sleep(_LOOK_SECONDS)


def send(processes: Iterable[psutil.Process], number: int) -> None:
    """Signals processes; those that have ended, or belong to another user, are left out."""
    import psutil

    for process in processes:
        with suppress(psutil.Error):
            process.send_signal(number)  # psutil notices when the pid was reused.


def descendants(pid: int) -> list[psutil.Process]:
    """Returns the children of a process, their children, and so on.

    psutil's own function compares start times. A system whose clock is being corrected reports
    those differently from one moment to the next, and children would be missed.
    """
    import psutil

    parents: dict[psutil.Process, int] = {}
    for process in _processes():
        with suppress(psutil.Error):
            parents[process] = process.ppid()
    family, found = {pid}, []
    while new := [p for p, parent in parents.items() if parent in family and p.pid not in family]:
        family.update(process.pid for process in new)
        found += new
    return found


def marked(*marks: str) -> list[psutil.Process]:
    """Returns the processes with one of the marks, as far as this user may look at them."""
    import psutil

    wanted = {mark for mark in marks if mark}
    found = []
    for process in _processes() if wanted else ():
        with suppress(psutil.Error, OSError):
            mark = process.environ().get(MARK, "")
            is_wanted = mark in wanted or mark.partition(".")[0] in wanted
            if is_wanted and process.pid != os.getpid():
                found.append(process)
    return found


def _processes() -> Iterator[psutil.Process]:
    """Yields every process, as it is now; `process_iter` would remember some that have ended."""
    import psutil

    for pid in psutil.pids():
        with suppress(psutil.Error):
            yield psutil.Process(pid)


def lives(process: psutil.Process) -> bool:
    """Whether a process still runs."""
    import psutil

    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


GRACE_SECONDS = 5.0
"""Time between asking a group to end and killing it."""

KEPT_BYTES = 4_000_000
"""How much of each stream is stored; the middle of anything longer is dropped."""

LINGER_SECONDS = 0.5
"""How long to wait for more output after a program has exited; a pipe holds little."""

_CHUNK = 65_536
_LEFT_SECONDS = 0.25

_KILL_LOOKS = 200
_KILL_LOOK_SECONDS = 0.01

Sink = Callable[[bytes], None]
"""Takes a program's output, chunk by chunk."""


@dataclass(eq=False)
class _Family:
    """A program, and everything that it starts."""

    mark: str
    group: int | None = None
    """None until it is known that the program runs."""


_under_way: set[_Family] = set()
"""The programs that have not ended completely.

What a program leaves behind when it exits is no descendant of this process any more.
"""


async def run_process(
    argv: Sequence[str],
    *,
    cwd: str | None = None,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    mark: str = "",
    seconds: float | None = None,
    grace_seconds: float = GRACE_SECONDS,
    started: Callable[[dict[str, Any]], None] = lambda _process: None,
    emit: Callable[[str], None] = lambda _text: None,
    out: Sink | None = None,
    err: Sink | None = None,
) -> CommandResult:
    """Runs a program to its end and returns what it printed; its group never outlives this call.

    When a program is stopped, everything it started is stopped too, even in another group. Those
    processes are found by `mark`.

    A stopped program that is still there after `grace_seconds` is killed.

    The program gets the variables in `env` and no others; without `env`, the ordinary ones. `out`
    and `err` get its output as it arrives, instead of `emit`; one that raises ends the program.
    """
    variables = command_environment((), {}) if env is None else env
    marking = {MARK: mark} if mark else {}
    family = _Family(mark)
    starting = asyncio.ensure_future(_start(argv, cwd, {**variables, **marking}))
    process = await _started(starting, family)
    outputs = _Output(out or _decoded(emit)), _Output(err or _decoded(emit))
    finished = False
    try:
        started({"pid": process.pid, "born": birth_of(process.pid) or "", "mark": mark})
        async with asyncio.timeout(seconds):
            code = await _converse(process, stdin, *outputs)
        finished = True
    except TimeoutError:
        raise CommandFailed(
            f"{argv[0]} took longer than {seconds:g} seconds and was stopped"
        ) from None
    finally:
        ending = _end_family(process, mark, grace_seconds, thoroughly=not finished)
        await _completed(family, ending, otherwise=partial(_kill, process))
    return CommandResult(code, outputs[0].text(), outputs[1].text())


async def _started(
    starting: asyncio.Task[asyncio.subprocess.Process], family: _Family
) -> asyncio.subprocess.Process:
    """Returns the program once it runs.

    If this were cancelled in between, asyncio would end the program alone, and then wait until
    its children close its pipes.
    """
    _under_way.add(family)
    try:
        process = await asyncio.shield(starting)
    except asyncio.CancelledError:
        ending = _end_unwanted(starting, family)
        await _completed(family, ending, otherwise=partial(_kill_unwanted, starting))
        raise
    except CommandFailed:
        _under_way.discard(family)
        raise
    family.group = process.pid
    return process


async def _end_unwanted(
    starting: asyncio.Task[asyncio.subprocess.Process], family: _Family
) -> None:
    if starting.cancelling():
        # The loop is ending, and has cancelled the start as well. asyncio has then killed the
        # program, and waits for pipes that may never be opened, until it is cancelled again.
        starting.cancel()
    await asyncio.wait({starting})
    with suppress(CommandFailed, asyncio.CancelledError):
        # On a busy machine it may have started others before asyncio reported that it runs.
        process = await starting
        family.group = process.pid
        await _end_family(process, family.mark, GRACE_SECONDS, thoroughly=True)


def _kill_unwanted(starting: asyncio.Task[asyncio.subprocess.Process]) -> None:
    def kill(started: asyncio.Task[asyncio.subprocess.Process]) -> None:
        if not started.cancelled() and started.exception() is None:
            _kill(started.result())

    starting.cancel()  # again, see above
    starting.add_done_callback(kill)


def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:  # Otherwise its pid may belong to another process.
        kill_family(process.pid)


async def _completed(
    family: _Family, ending: Coroutine[Any, Any, None], *, otherwise: Callable[[], None]
) -> None:
    """Awaits what ends a program; a cancellation of the caller does not stop it halfway.

    Only the end of the loop does, which cancels every task. Then `otherwise` is called: it needs
    no task, and a task that is cancelled before its first step could not even clean up.
    """

    def finish(ended: asyncio.Task[None]) -> None:
        if ended.cancelled():
            otherwise()
        _under_way.discard(family)

    task = asyncio.ensure_future(ending)
    task.add_done_callback(finish)
    await asyncio.shield(task)


async def _start(
    argv: Sequence[str], cwd: str | None, env: Mapping[str, str]
) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=cwd,
            env=env,
            start_new_session=True,
            preexec_fn=_adopting(),
        )
    except FileNotFoundError:
        folder = f" (in {cwd})" if cwd is not None else ""
        raise CommandFailed(f"{argv[0]!r} was not found{folder}; check the name and PATH") from None
    except (OSError, ValueError) as error:
        raise CommandFailed(f"{argv[0]!r} could not be started: {error}") from error


@cache
def _adopting() -> Callable[[], object] | None:
    """Returns a call that makes a program adopt the orphans among its descendants (Linux).

    A daemon's parent exits, so the daemon would become a child of the system's first process, and
    could not be recognized as ours. The setting is made between fork and exec and survives exec.
    """
    if sys.platform != "linux":
        return None
    import ctypes

    # Python 3.12 and later warn about a fork in a threaded process; this one makes one system call.
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    set_child_subreaper = 36
    # PyDLL keeps the interpreter's lock: in a freshly forked process nothing may wait for it.
    return partial(ctypes.PyDLL(None).prctl, set_child_subreaper, 1, 0, 0, 0)


async def _converse(
    process: asyncio.subprocess.Process, stdin: str | None, out: _Output, err: _Output
) -> int:
    """Writes a program's input and reads its output; returns its exit code."""
    talk = asyncio.gather(_feed(process, stdin), out.read(process.stdout), err.read(process.stderr))
    # Always retrieved: asyncio would otherwise log the error of a conversation cut off below.
    talk.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    leaving = asyncio.ensure_future(_left(process))
    try:
        either: set[asyncio.Future[Any]] = {talk, leaving}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not talk.done():
            # It has exited; children it left behind may hold its pipes open forever.
            await asyncio.wait({talk}, timeout=LINGER_SECONDS)
        if talk.done():
            talk.result()
        return await leaving
    finally:
        talk.cancel()
        leaving.cancel()


async def _left(process: asyncio.subprocess.Process) -> int:
    """Returns the exit code once the program has exited, even if its pipes are still open.

    `wait()` alone would wait for the pipes as well.
    """
    closed = asyncio.ensure_future(process.wait())
    try:
        while process.returncode is None:
            await asyncio.wait({closed}, timeout=_LEFT_SECONDS)
    finally:
        closed.cancel()
    return process.returncode


async def _end_family(
    process: asyncio.subprocess.Process, mark: str, grace_seconds: float, *, thoroughly: bool
) -> None:
    """Ends a program with its group; `thoroughly`, also what it started in other groups."""
    loose: Sequence[Any] = ()
    try:
        # Searched while the program lives: after it they have other parents.
        loose = await asyncio.to_thread(descendants, process.pid) if thoroughly else ()
        await _end(process, grace_seconds)
    except asyncio.CancelledError:
        # The loop itself is ending, so there is no time for SIGTERM first.
        kill_family(process.pid, loose)
        raise
    if thoroughly:
        await end_orphans(mark, also=loose)


async def _end(process: asyncio.subprocess.Process, grace_seconds: float) -> None:
    await end_group(process.pid, grace_seconds)
    await _left(process)
    # A process that left the group may hold the other ends; ours are closed all the same.
    process._transport.close()  # type: ignore[attr-defined]  # no public method does this


def _decoded(emit: Callable[[str], None]) -> Sink:
    return lambda chunk: emit(chunk.decode("utf-8", "replace"))


async def _feed(process: asyncio.subprocess.Process, text: str | None) -> None:
    pipe = process.stdin
    if pipe is None:
        return
    # A program need not read its input; its exit code says whether that was an error.
    with suppress(BrokenPipeError, ConnectionResetError):
        if text:
            pipe.write(text.encode("utf-8", "surrogatepass"))
            await pipe.drain()
    pipe.close()


class _Output:
    """The output of one stream: its beginning and its end, of limited size."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    async def read(self, stream: asyncio.StreamReader | None) -> None:
        while stream is not None and (chunk := await stream.read(_CHUNK)):
            self._sink(chunk)
            room = KEPT_BYTES // 2 - len(self._head)
            self._head += chunk[:room] if room > 0 else b""
            self._tail += chunk[max(room, 0) :]
            over = len(self._tail) - KEPT_BYTES // 2
            if over > 0:
                del self._tail[:over]
                self._dropped += over

    def text(self) -> str:
        head = self._head.decode("utf-8", "replace")
        tail = self._tail.decode("utf-8", "replace")
        note = f"\n[... {self._dropped} bytes left out ...]\n" if self._dropped else ""
        return head + note + tail


async def end_processes(state: RunState) -> None:
    """Ends programs that outlived the runner that started them, recorded or not."""
    marks = set()
    for records in state.effects.values():
        for identity, record in records.items():
            if record.done or record.kind not in (EffectKind.ASK, EffectKind.COMMAND):
                continue
            marks.add(mark_of(state.seed, state.step or "", state.visit, state.attempt, identity))
            if record.process is not None:
                await end_process(record.process)
    if marks:
        await end_orphans(*marks)


async def end_process(process: Mapping[str, Any]) -> None:
    """Ends what a dead runner left behind: the recorded group, and processes that left it."""
    pid, born = process["pid"], process["born"]
    current = birth_of(pid)
    loose = await asyncio.to_thread(descendants, pid) if born and current == born else []
    if current in (born, None):  # Otherwise the pid belongs to another process.
        await end_group(pid)
    await end_orphans(process.get("mark", ""), also=loose)


def kill_family(pid: int, loose: Sequence[Any] = ()) -> None:
    """Kills a program, its group and its descendants at once."""
    loose = loose or descendants(pid)
    _signal(pid, signal.SIGKILL)
    send(loose, signal.SIGKILL)


def kill_children() -> None:
    """Kills every program that this process started, and everything that these started, at once."""
    families = list(_under_way)
    for _ in range(_KILL_LOOKS):
        for group in filter(None, (each.group for each in families)):
            _signal(group, signal.SIGKILL)
        # Looked for again: what is about to be killed may just have started something else.
        found = {*descendants(os.getpid()), *marked(*(each.mark for each in families))}
        left = [process for process in found if lives(process)]
        if not left:
            return
        send(left, signal.SIGKILL)
        time.sleep(_KILL_LOOK_SECONDS)


async def end_group(pid: int, grace_seconds: float = GRACE_SECONDS) -> None:
    """Ends a process group, first with SIGTERM, then with SIGKILL; returns when it is gone."""
    for number, wait_seconds in ((signal.SIGTERM, grace_seconds), (signal.SIGKILL, GRACE_SECONDS)):
        if not _signal(pid, number):
            return
        for seconds in _pauses(wait_seconds):
            # In a thread: it looks at every process. It may also be the first to import psutil,
            # and a signal handler that runs during an import in its own thread gets half a module.
            if not await asyncio.to_thread(_alive, pid):
                return
            await asyncio.sleep(seconds)


def _pauses(seconds: float) -> Iterator[float]:
    """Yields the pauses between looks, in `seconds` altogether.

    They get longer: most programs end at once, and each look takes time, because it visits every
    process of the machine.
    """
    short = min(seconds, 0.5)
    yield from repeat(0.02, round(short / 0.02))
    yield from repeat(0.1, round((seconds - short) / 0.1))


def _alive(group: int) -> bool:
    """Tells whether a process of a group still runs; zombies do not count."""
    if not _signal(group, 0):
        return False
    import psutil

    members = [pid for pid in psutil.pids() if _group(pid) == group]
    return not members or any(birth_of(pid) is not None for pid in members)


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except OSError:
        return None  # gone by now


def _signal(group: int, number: int) -> bool:
    """Signals a whole group; tells whether there was one."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
