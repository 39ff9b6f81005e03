"""The crash harness on the store that the test uses; see `tests/run_stores.py`."""

from collections.abc import Iterator
from pathlib import Path

from signoff.testing import Survival, crash
from signoff.testing.crash import Story
from signoff.testing.doubles import When
from tests.run_stores import server_stores


def crash_everywhere(story: Story, directory: Path, *, when: When) -> Iterator[Survival]:
    """Kills the story at its first write, then at its second, until it ends without a kill."""
    return crash.crash_everywhere(story, directory, when=when, new_store=server_stores())


def crash_at(
    story: Story,
    directory: Path,
    *,
    at: int,
    when: When,
    again: bool = False,
    timeout: float = 120.0,
) -> Survival:
    """Kills a process at one write, then lets fresh processes continue to the end."""
    return crash.crash_at(
        story, directory, at=at, when=when, again=again, timeout=timeout, new_store=server_stores()
    )
