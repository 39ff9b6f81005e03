"""What stands for a value that is still to be filled in, and how values are written as text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from signoff.core.args import BoundedInt, Param

_LISTED = 10
"""A placeholder lists that many numbers of a range; of a longer range, the first and the last."""


def placeholder(param: Param) -> str:
    """Returns what stands for a value to fill in: its choices, or the parameter's name."""
    domain = param.domain()
    if isinstance(domain, BoundedInt) and domain.hi - domain.lo >= _LISTED:
        return f"<{domain.lo}|...|{domain.hi}>"
    choices = "|".join(map(value_text, domain)) if domain is not None else param.name
    return f"<{choices}>"


def value_text(value: Any) -> str:
    """Returns a parameter's value as it is typed, and read again by the next command."""
    match value:
        case bool():
            return str(value).lower()
        case list() | tuple() if _is_plain(value):
            return ",".join(value)
        case list() | tuple() | dict():
            return json.dumps(value, ensure_ascii=False)
    return str(value)


def _is_plain(items: Sequence[Any]) -> bool:
    """Tells whether the items of a list can be told apart when commas join them."""
    plain = all(isinstance(each, str) and each.strip() == each and each for each in items)
    return bool(items) and plain and not any("," in each for each in items) and items[0][0] != "["
