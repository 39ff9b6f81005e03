"""Writes values as readable YAML: in order, and texts of several lines as blocks."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.representer import SafeRepresenter

_UNUSUAL = re.compile(r"[^\n\t -~]")
"""What may be invisible; `str.isprintable` decides."""


def as_yaml(value: Mapping[str, Any]) -> bytes:
    """Returns a mapping as a YAML document."""
    writer, page = YAML(typ="safe", pure=True), StringIO()
    writer.default_flow_style = False
    writer.indent(mapping=2, sequence=4, offset=2)
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]  # typed as None
    writer.width = sys.maxsize
    writer.Representer = _Representer
    writer.dump(value, page)
    # A bidirectional override would show a human another work order than the one that is
    # approved, and ruamel.yaml writes it raw. `represent_str` quotes every text with such a
    # character, and between double quotes its escape means the same.
    return _UNUSUAL.sub(_escaped, page.getvalue()).encode()


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if match[0].isprintable():
        return match[0]
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


class _Representer(SafeRepresenter):
    """Writes texts of several lines as blocks, where YAML can write them so."""

    def represent_str(self, data: str) -> ScalarNode:
        # Half of a surrogate pair is not a character; its escape is written as text.
        text = data.encode("utf-8", "backslashreplace").decode()
        style = None if text.isprintable() else "|" if _reads_as_block(text) else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", text, style)

    def ignore_aliases(self, _data: Any) -> bool:
        """Writes equal values again: nobody reads an alias."""
        return True


_Representer.add_representer(str, _Representer.represent_str)
_Representer.add_multi_representer(dict, SafeRepresenter.represent_dict)
_Representer.add_multi_representer(list, SafeRepresenter.represent_list)


def _reads_as_block(text: str) -> bool:
    """Tells whether a text of several lines can be written as a block without changing it."""
    if "\n" not in text:
        return False
    plain = text.replace("\n", "").replace("\t", "").isprintable()
    # Lines may end with blanks, but a line of blanks would be read as an empty one.
    blank = text[0].isspace() or any(line.isspace() for line in text.split("\n"))
    return plain and not blank and not text.endswith("\n\n")
