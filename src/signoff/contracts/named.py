"""Functions that a definition names instead of holding them: commands, and checks of conditions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from signoff.errors import Problem

_PLACE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@dataclass(frozen=True)
class Named:
    """Finds functions by the author's own names, or by `package.module:function`."""

    commands: Mapping[str, Callable[..., Any]]

    def knows(self, text: str) -> bool:
        """Tells whether a text is the name of a function, and nothing else."""
        return text in self.commands or _PLACE.fullmatch(text) is not None

    def found(self, text: str) -> Callable[..., Any]:
        """Returns a function that was found to be there."""
        function: Callable[..., Any] = self._looked_up(text)
        return function

    def problems(self, text: str, where: str, what: str) -> Iterator[Problem]:
        """Yields why a name leads to no function; `what` says what it is the name of."""
        try:
            found = self._looked_up(text)
        except Exception as error:  # noqa: BLE001  # a module may raise anything while it is imported
            said = f"{type(error).__name__}: {error}"
            yield Problem(where, f"the {what} {text!r} cannot be loaded: {said}", self.listed)
            return
        if not callable(found):
            yield Problem(where, f"the {what} {text!r} is no function")

    @property
    def listed(self) -> str:
        """The author's own names in words; empty where there are none."""
        return f"there is: {', '.join(self.commands)}" if self.commands else ""

    def _looked_up(self, text: str) -> Any:
        if text in self.commands:
            return self.commands[text]
        module, _, name = text.partition(":")
        return getattr(import_module(module), name)
