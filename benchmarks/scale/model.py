"""A seeded discrete-event model of workers that share one database.

Runs arrive at random, wait in the queue, are claimed, and make calls one after the other; around
each call the worker's processor and the database are busy for as long as was measured. Runs are
events on a heap. What happens all the time (polls, heartbeats) is not: it only makes the database
slower, by the share of it that it takes at that moment.
"""

from __future__ import annotations

import heapq
from array import array
from collections import deque
from dataclasses import dataclass, field
from random import Random

from benchmarks.scale.costs import Cost, Costs

MOST_LOOKS = 10.0
"""How often a second a worker looks at most, however often it is woken."""

FULL = 0.98
"""The largest share of the database that background work can take; beyond it nothing moves."""


@dataclass(frozen=True)
class Wakeup:
    """How a worker with a free slot learns about a queued run."""

    name: str
    poll_seconds: float
    """The pause between two questions."""
    claims_per_poll: float
    """How often a question is followed by a claim that finds nothing."""
    all_woken: bool = False
    """Whether every worker with a free slot looks when a run is queued, and not only one."""
    delay: float | None = None
    """How long a run waits until a free worker looks; None: until the next poll of one of them."""


POLLING = Wakeup("polling", 0.1, 1.0)
"""Ten questions a second, and a claim whenever any other process has written."""

NOTIFY = Wakeup("notify", 2.0, 1.0, all_woken=True, delay=0.002)
"""The database says when a run is queued; a slow poll finds what was missed."""

DISPATCHED = Wakeup("temporal", 10.0, 1.0, delay=0.02)
"""A dispatcher brings runs; the store is swept for what it lost."""


@dataclass(frozen=True)
class Scenario:
    """What is simulated."""

    workers: int
    runs: int
    slots: int = 4
    calls: int = 4
    """Calls of each run, one after the other."""
    call_seconds: float = 1.0
    load: float = 0.7
    """Arrivals as a share of what all slots together can do; with 0 all runs are queued at once."""
    database_cores: float = 2.0
    worker_cores: int | None = None
    """Cores that all workers share; None if each worker has one."""
    wakeup: Wakeup = POLLING
    temporal_cores: float = 0.0
    """Cores of Temporal's server; 0 without one."""
    seed: int = 7

    @property
    def capacity(self) -> float:
        """Runs per second if nothing but the calls took time."""
        return self.workers * self.slots / (self.calls * self.call_seconds)


@dataclass
class Result:
    """What came out."""

    seconds: float
    """From the first arrival to the last end, in simulated time."""
    done: bytearray
    """How often each run ended."""
    claim_seconds: list[float]
    """Sorted: how long each run waited for a worker."""
    longest_queue: int
    database_runs: float
    """Share of the database that runs took."""
    database_idle: float
    """Share of it that polls, heartbeats and empty claims took, on average."""
    worker_busy: float
    """Share of the workers' processors."""
    dispatcher_busy: float = 0.0

    @property
    def per_second(self) -> float:
        """Runs that ended in a second."""
        return len(self.done) / self.seconds

    def latency(self, share: float) -> float:
        """Returns a percentile of the claim latency."""
        return self.claim_seconds[min(len(self.done) - 1, int(share * len(self.done)))]


class Lanes:
    """Processors that serve requests in the order of arrival."""

    def __init__(self, count: int) -> None:
        self._free_at = [0.0] * max(1, count)
        self.busy = 0.0

    def serve(self, now: float, seconds: float) -> float:
        """Returns when a request that arrives now is done."""
        end = max(now, self._free_at[0]) + seconds
        heapq.heapreplace(self._free_at, end)
        self.busy += seconds
        return end


_CLAIM, _STEP, _END, _ARRIVAL = range(4)
Event = tuple[float, int, int, int, int, int]
"""Time, a number that keeps the order, kind, worker, run, calls left."""


@dataclass
class Simulation:
    """One scenario, driven to the end of its last run."""

    scenario: Scenario
    costs: Costs
    _heap: list[Event] = field(default_factory=list)
    _number: int = 0
    _queue: deque[int] = field(default_factory=deque)
    _background: float = 0.0
    """The share of the database that runs do not get at the moment."""
    _background_wanted: float = 0.0
    """The same, which may be more than all of it."""

    def run(self) -> Result:
        """Simulates until every run has ended."""
        self._prepare()
        scenario, heap = self.scenario, self._heap
        handlers = (self._claim, self._step, self._end, self._arrive)
        now = 0.0
        while heap:
            now, _, kind, worker, run, left = heapq.heappop(heap)
            handlers[kind](now, worker, run, left)
        total = now * scenario.database_cores
        cores = scenario.worker_cores or scenario.workers
        return Result(
            seconds=now,
            done=self._done,
            claim_seconds=sorted(self._waited),
            longest_queue=self._longest,
            database_runs=self._database_seconds / total,
            database_idle=self._background_seconds / now,
            worker_busy=sum(lane.busy for lane in self._lanes) / now / cores,
            dispatcher_busy=self._dispatcher.busy / now / max(1.0, scenario.temporal_cores),
        )

    def _prepare(self) -> None:
        scenario = self.scenario
        self._random = Random(scenario.seed)
        self._database = Lanes(round(scenario.database_cores))
        self._dispatcher = Lanes(round(scenario.temporal_cores))
        shared = scenario.worker_cores
        self._lanes = [Lanes(shared)] if shared else [Lanes(1) for _ in range(scenario.workers)]
        self._free = [scenario.slots] * scenario.workers
        self._idle = list(range(scenario.workers))
        self._place = list(range(scenario.workers))
        self._done = bytearray(scenario.runs)
        self._arrived = array("d", bytes(8 * scenario.runs))
        self._waited = array("d", bytes(8 * scenario.runs))
        self._longest = 0
        self._database_seconds = self._background_seconds = self._background_at = 0.0
        self._set_background(0.0)
        # Half of what a run costs once is due at its start, half at its end.
        once = self.costs.run
        self._half = Cost(once.database / 2, once.worker / 2, once.delay / 2)
        self._first = self._half + self.costs.call
        if scenario.load:
            self._push(0.0, _ARRIVAL)
        else:
            self._queue.extend(range(scenario.runs))
            for worker in range(scenario.workers):
                self._push(self._wakeup_delay(), _CLAIM, worker)

    # Events

    def _arrive(self, now: float, _worker: int, run: int, left: int) -> None:
        """A run is handed over; with a dispatcher it reaches the queue a little later."""
        scenario = self.scenario
        if left == 0:
            self._arrived[run] = now
            if run + 1 < scenario.runs:
                rate = scenario.capacity * scenario.load
                self._push(now + self._random.expovariate(rate), _ARRIVAL, 0, run + 1)
            if scenario.temporal_cores:
                brought = self._dispatcher.serve(now, self.costs.temporal_run)
                self._push(brought, _ARRIVAL, 0, run, 1)
                return
        self._queue.append(run)
        self._longest = max(self._longest, len(self._queue))
        self._wake(now)

    def _claim(self, now: float, worker: int, _run: int, _left: int) -> None:
        """A worker with a free slot takes as many runs as it can drive."""
        free, queue = self._free[worker], self._queue
        if queue and free:
            scan = self.costs.claim_queued * len(queue)
            end = self._work(now, worker, self.costs.claim + Cost(scan))
            taken = min(free, len(queue))
            for _ in range(taken):
                run = queue.popleft()
                self._waited[run] = end - self._arrived[run]
                self._push(end, _STEP, worker, run, self.scenario.calls)
            self._free[worker] = free - taken
            if taken == free:
                self._set_idle(now, worker, idle=False)
        if queue:
            self._wake(now)

    def _step(self, now: float, worker: int, run: int, left: int) -> None:
        """A run continues until its next call, or ends."""
        if left == 0:
            self._push(self._work(now, worker, self._half), _END, worker, run)
            return
        cost = self._first if left == self.scenario.calls else self.costs.call
        end = self._work(now, worker, cost)
        self._push(end + self.scenario.call_seconds, _STEP, worker, run, left - 1)

    def _end(self, now: float, worker: int, run: int, _left: int) -> None:
        """A run has ended, and its worker looks for another one."""
        self._done[run] += 1
        self._free[worker] += 1
        if self._free[worker] == 1:
            self._set_idle(now, worker, idle=True)
        self._claim(now, worker, 0, 0)

    # Parts

    def _work(self, now: float, worker: int, cost: Cost) -> float:
        """Occupies a worker's processor and the database; returns the end.

        Both are asked now, and their times added up. A request for a later time would occupy a
        processor that is free until then.
        """
        lane = self._lanes[0 if self.scenario.worker_cores else worker]
        own = lane.serve(now, cost.worker) - now
        self._database_seconds += cost.database
        slowed = cost.database / (1.0 - self._background)
        return self._database.serve(now, slowed) + own + cost.delay

    def _wake(self, now: float) -> None:
        """Lets one of the workers with a free slot look for a run soon."""
        if self._idle:
            worker = self._idle[int(self._random.random() * len(self._idle))]
            self._push(now + self._wakeup_delay(), _CLAIM, worker)

    def _wakeup_delay(self) -> float:
        wakeup = self.scenario.wakeup
        if wakeup.delay is not None:
            return wakeup.delay
        # The earliest of many polls that happen at random times.
        first: float = 1.0 - self._random.random() ** (1.0 / max(1, len(self._idle)))
        return wakeup.poll_seconds * first

    def _set_idle(self, now: float, worker: int, *, idle: bool) -> None:
        if idle:
            self._place[worker] = len(self._idle)
            self._idle.append(worker)
        else:
            place, last = self._place[worker], self._idle[-1]
            self._idle[place], self._place[last] = last, place
            self._idle.pop()
        self._set_background(now)

    def _set_background(self, now: float) -> None:
        self._background_seconds += self._background_wanted * (now - self._background_at)
        self._background_at = now
        self._background_wanted = background(self.scenario, self.costs, len(self._idle))
        self._background = min(FULL, self._background_wanted)

    def _push(self, at: float, kind: int, worker: int = 0, run: int = 0, left: int = 0) -> None:
        self._number += 1
        heapq.heappush(self._heap, (at, self._number, kind, worker, run, left))


def background(scenario: Scenario, costs: Costs, idle: int) -> float:
    """Returns the share of the database that workers take without doing anything.

    Every worker beats and looks for cancelled runs; those with a free slot also look for work.
    """
    wakeup = scenario.wakeup
    always = costs.beat.database / 10.0 + costs.look.database / 0.25
    looking = costs.poll.database + wakeup.claims_per_poll * costs.claim_empty.database
    looks = 1.0 / wakeup.poll_seconds
    if wakeup.all_woken:
        looks = min(MOST_LOOKS, looks + scenario.capacity * scenario.load)
    seconds = scenario.workers * always + idle * looking * looks
    return seconds / scenario.database_cores
