"""Reports options in the settings that the agent or observer they belong to does not take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from signoff.app.settings import Settings
from signoff.errors import Problem


def unknown_option_problems(
    settings: Settings, owner: str, options: Iterable[str], known: Sequence[str]
) -> Iterator[Problem]:
    """Yields a problem for each unknown option, with its line; `owner` is as in `agents.claude`."""
    for option in sorted(set(options) - set(known)):
        from difflib import get_close_matches

        close = get_close_matches(option, known, n=1)
        suggestion = f"did you mean {close[0]!r}? " if close else ""
        where = origin_of(settings, f"{owner}.{option}", owner)
        valid = f"valid: {', '.join(known) or 'none'}"
        yield Problem(where, f"{owner}: unknown option {option!r}", f"{suggestion}{valid}")


def origin_of(settings: Settings, key: str, otherwise: str = "") -> str:
    """Returns where a setting comes from; `otherwise`, or its key, if nothing sets it."""
    value = settings.values.get(key)
    return value.origin if value is not None else otherwise or key
