"""How each notation lays out its run directories, loaded when a run of it is first shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from signoff import plugins
from signoff.store.rundir import Layout


class Layouts(Mapping[str, Layout]):
    """The layouts there are, by notation."""

    def __init__(self) -> None:
        self._made: dict[str, Layout] = {}

    def __getitem__(self, notation: str) -> Layout:
        """Returns a notation's layout; raises `KeyError` where it has none of its own."""
        if notation not in self._made:
            found = plugins.notation(notation)
            if found is None or not found.layout:
                raise KeyError(notation)
            self._made[notation] = plugins.load(found.layout)()
        return self._made[notation]

    def __iter__(self) -> Iterator[str]:
        """Yields the notations whose layouts are in use."""
        return iter(self._made)

    def __len__(self) -> int:
        """Counts them."""
        return len(self._made)
