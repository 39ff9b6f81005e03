"""Reads replies in YAML from judges that were asked for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from signoff.review.fields import Unreadable

LONGEST = 200_000
"""Characters; parsing more would take longer than asking again."""
MOST_EVENTS = 10_000
"""What the parser reports about a reply: enough for a thousand decisions."""
DEEPEST = 50
"""The parser's time grows with the square of the depth."""


def read_yaml(text: str) -> Mapping[str, Any]:
    """Returns the single mapping in a text, fenced or not; raises `Unreadable`."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    body = _body(text)
    try:
        _check_effort(YAML(typ="safe", pure=True).parse(body))
        value = YAML(typ="safe", pure=True).load(body)
        # Python refuses to print numbers of thousands of digits, so such a reply would fail later.
        str(value)
    except (YAMLError, ValueError, RecursionError) as error:
        raise Unreadable("it is neither a JSON object nor YAML") from error
    if not isinstance(value, Mapping):
        raise Unreadable("it is not a JSON object" if body.strip() else "it is empty")
    return value


def _check_effort(events: Iterable[Any]) -> None:
    """Raises `Unreadable` for a reply that takes long to read.

    With aliases, a reply of a few hundred characters has more values than any machine can hold.
    Nothing that a judge is asked for needs them.
    """
    from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent

    depth = 0
    for number, event in enumerate(events):
        if isinstance(event, AliasEvent) or getattr(event, "anchor", None):
            raise Unreadable("it uses anchors or aliases of YAML; write each value out")
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if number > MOST_EVENTS or depth > DEEPEST:
            raise Unreadable("it is too long or nested too deep to be read as YAML")


def _body(text: str) -> str:
    if len(text) > LONGEST:
        raise Unreadable("it contains no JSON object")
    lines = text.split("\n")
    fences = [index for index, line in enumerate(lines) if line.startswith("```")]
    if not fences:
        return text
    if len(fences) != 2:
        raise Unreadable("it must contain exactly one complete fenced block")
    return "\n".join(lines[fences[0] + 1 : fences[1]])
