from dataclasses import dataclass
from typing import Any

import pytest

from signoff.agents.base import option_names


@dataclass
class Common:
    model: str = ""
    timeout: float = 1.0


@dataclass
class Derived(Common):
    stream: bool = True


class Open:
    def __init__(self, path: str, **anything: Any) -> None: ...


class Empty: ...


def factory(model: str, *, seed: int = 0) -> Empty:
    return Empty()


def any_factory(**options: Any) -> Empty:
    return Empty()


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (Common, ["model", "timeout"]),
        (Derived, ["model", "timeout", "stream"]),
        (Open, None),
        (Empty, []),
        (factory, ["model", "seed"]),
        (any_factory, None),
        (int, None),
    ],
)
def test_the_options_of_a_kind_are_known_unless_it_takes_any(
    kind: Any, names: list[str] | None
) -> None:
    """A misspelled option is refused, and one that the kind may take is not."""
    assert option_names(kind) == names
