"""Compares what was really done with what the journals say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from benchmarks.soak.slow_calls import CALLS_PER_RUN, expected
from signoff.core import events as ev
from signoff.core.outcome import Status
from signoff.runtime.store_port import Store, events_in, folded_state

RENEWAL_SECONDS = 3.0
"""How long after PostgreSQL is back all living workers have renewed their leases.

They try every 2 seconds. One that has not is silent, and a later attempt of a dispatcher may take
its runs.
"""


class StartedCall(NamedTuple):
    """One call that an agent really got."""

    at: float
    run: str
    effect: str
    pid: int


class Kill(NamedTuple):
    """One process that was killed."""

    at: float
    until: float
    """When a worker was gone, or a server was back."""
    kind: str
    pid: int = 0
    """The worker that was killed; 0 for a server."""


@dataclass
class Judgment:
    """What a soak has shown; it passes if `broken` is empty."""

    runs: int = 0
    calls: int = 0
    """Calls that the runs needed."""
    repeats: int = 0
    """Calls that were under way when their worker, or a server, was killed, and made again."""
    repeats_of_the_living: int = 0
    """Those whose worker was not killed: it had lost its run to another one."""
    broken: list[str] = field(default_factory=list)
    """Promises that were not kept."""


def judge(store: Store, log: Path, names: Sequence[str], kills: Sequence[Kill]) -> Judgment:
    """Checks that every run ended as it must, and that only calls under way were repeated."""
    calls = read_calls(log)
    found = {row.name: row for row in store.rows()}
    judgment = Judgment(runs=len(names), calls=len(names) * CALLS_PER_RUN)
    for name in names:
        row = found.get(name)
        if row is None:
            judgment.broken.append(f"{name}: lost")
            continue
        state = folded_state(store.load(name), store.blob)
        if state.status is not Status.COMPLETED or dict(state.state) != expected(name):
            judgment.broken.append(f"{name}: ended as {row.status} ({row.reason}) {state.state}")
        events = events_in(store.journal(row.id), store.blob)
        _judge_calls(judgment, name, events, calls, kills)
    return judgment


def read_calls(log: Path) -> dict[tuple[str, str], list[StartedCall]]:
    """Returns the calls that were started, by run and effect, in order."""
    calls = defaultdict(list)
    for line in log.read_text().splitlines() if log.exists() else ():
        at, what, run, effect, _attempt, pid = line.split()
        if what == "start":
            calls[run, effect].append(StartedCall(float(at), run, effect, int(pid)))
    return calls


def _judge_calls(
    judgment: Judgment,
    name: str,
    events: Iterable[ev.Event],
    calls: dict[tuple[str, str], list[StartedCall]],
    kills: Sequence[Kill],
) -> None:
    finished = [each for each in events if isinstance(each, ev.EffectFinished)]
    for effect, made in ((e, c) for (run, e), c in calls.items() if run == name):
        ends = [each.at for each in finished if each.id == effect and each.error is None]
        if len(ends) != 1:
            judgment.broken.append(f"{name}: {effect} has {len(ends)} recorded replies")
        again = [call for call in made for end in ends if call.at > end]
        if again:
            # An accepted commit has the current fence, so no other worker had the run before it.
            judgment.broken.append(f"{name}: {effect} was finished, and called again {again}")
        for earlier, later in pairwise(made):
            judgment.repeats += 1
            kinds = reasons(earlier, later, kills)
            judgment.repeats_of_the_living += "worker" not in kinds
            if not kinds:
                judgment.broken.append(f"{name}: {effect} was repeated without a kill {made}")


def reasons(earlier: StartedCall, later: StartedCall, kills: Iterable[Kill]) -> set[str]:
    """Returns the kinds of kills for which a call under way may have been made again.

    Temporal is never one: a worker that lives keeps its runs while Temporal is away.
    """
    kinds = set()
    for kill in kills:
        is_its_worker = kill.kind == "worker" and kill.pid == earlier.pid
        until = kill.until + (RENEWAL_SECONDS if kill.kind == "postgres" else 0.0)
        if (
            (is_its_worker or kill.kind == "postgres")
            and kill.at <= later.at
            and earlier.at <= until
        ):
            kinds.add(kill.kind)
    return kinds
