"""The run directory layout of each notation, loaded when it is first needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from signoff import plugins
from signoff.store.rundir.layout import Layout


class Layouts(Mapping[str, Layout]):
    """Layouts by notation."""

    def __init__(self) -> None:
        self._layouts: dict[str, Layout] = {}

    def __getitem__(self, notation: str) -> Layout:
        """Returns a notation's layout; raises `KeyError` if it has none of its own."""
        if notation not in self._layouts:
            found = plugins.notation(notation)
            if found is None or not found.layout:
                raise KeyError(notation)
            self._layouts[notation] = plugins.load(found.layout)()
        return self._layouts[notation]

    def __iter__(self) -> Iterator[str]:
        """Yields the notations whose layouts were loaded."""
        return iter(self._layouts)

    def __len__(self) -> int:
        """Returns how many layouts were loaded."""
        return len(self._layouts)
