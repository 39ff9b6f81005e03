"""Writes values as YAML that people read: in order, and texts of several lines as blocks."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any


def as_yaml(value: Mapping[str, Any]) -> bytes:
    """Returns a mapping as a YAML document."""
    from ruamel.yaml import YAML

    yaml = YAML(typ="rt", pure=True)
    yaml.width = 4096
    yaml.allow_unicode = True
    yaml.indent(mapping=2, sequence=4, offset=2)
    out = io.StringIO()
    yaml.dump(_shaped(value), out)
    return out.getvalue().encode("utf-8", "backslashreplace")


def _shaped(value: Any) -> Any:
    from ruamel.yaml.scalarstring import LiteralScalarString

    if isinstance(value, Mapping):
        return {str(key): _shaped(each) for key, each in value.items()}
    if isinstance(value, str):
        text = value.encode("utf-8", "backslashreplace").decode()
        return LiteralScalarString(text) if _reads_as_block(text) else text
    if isinstance(value, Sequence):
        return [_shaped(each) for each in value]
    return value


def _reads_as_block(text: str) -> bool:
    """Tells whether a text of several lines stands in a block unchanged."""
    plain = text.replace("\n", "").replace("\t", "").isprintable()
    blanks = any(line != line.rstrip() for line in text.split("\n"))
    return "\n" in text and plain and not blanks and not text[0].isspace()
