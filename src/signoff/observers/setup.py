"""What an observer gets from the project whose runs it watches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from signoff.errors import UnknownName
from signoff.exports.run_record import RunRecord
from signoff.runtime.environment import Secrets
from signoff.runtime.ports import Clock, SystemClock
from signoff.runtime.store_port import InboxItem, Store


def _no_record(_store: Store, run: str) -> RunRecord:
    raise UnknownName("run", run, [])


@dataclass(frozen=True, kw_only=True)
class ObserverSetup:
    """The first argument of every factory of observers; the options of the settings follow it."""

    open_store: Callable[[], Store]
    """Opens the project's database again, for use in the observer's thread; close it there."""
    folder: Path
    """The project home: relative paths in the options are relative to it."""
    log_content: bool = False
    """Whether prompts, replies and inputs may leave the database."""
    clock: Clock = field(default_factory=SystemClock)
    secrets: Secrets = field(default_factory=Secrets)
    """Values that must never be written or sent."""
    record_of: Callable[[Store, str], RunRecord] = _no_record
    """Returns what a store has about the run of a name, such as its journal so far."""
    metrics_text: Callable[[Store], str] = lambda _store: ""
    """Computes the metrics of all runs of a store, in the text format of Prometheus."""
    answer_commands: Callable[[InboxItem, Mapping[str, Any]], Sequence[str]] = lambda _, __: ()
    """Returns the exact commands that answer a request, given with its form."""
