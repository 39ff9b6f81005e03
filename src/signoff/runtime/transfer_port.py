"""What a store does when a run is moved to it or away from it.

The order makes it safe to kill the mover at any point. The run's document is staged in the new
store, where it is not a run yet. Then the old store gives the run up and remembers where it went,
in one transaction. Then the new store admits what is staged. So at every moment one of the two
stores has the run, and after the second step the new one has all it needs to finish.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from signoff.runtime.stored_values import RunId


class RunTransfer(Protocol):
    """What a store does when a run leaves it or arrives."""

    def stage(self, name: str, document: str) -> None:
        """Stores the document of a run that arrives; it replaces an earlier one of that name."""
        ...

    def staged(self, name: str) -> str | None:
        """Returns the document of a run that was staged and not admitted yet."""
        ...

    def admit(self, name: str) -> None:
        """Makes the staged document a run; raises `NameTaken` if there is another of this name."""
        ...

    def retire(
        self, run: RunId, fence: int, requests: Sequence[tuple[int, str]], target: str
    ) -> bool:
        """Deletes a run that was taken with this fence, and remembers where it went.

        False if the fence or the states of its requests are not these any more: someone has
        answered since the run was read.
        """
        ...

    def moved(self, name: str) -> str | None:
        """Returns where a run of this name went."""
        ...
