"""Values as the server itself stores them, for statements that are sent without the driver's help.

The driver finds out the type of every value each time it sends one. A commit knows its types, and
without that search it takes half of this process's time. Only the types that commits use are here.
Texts are binary as well: libpq would cut a text in text form at its first NUL, and the server
refuses it in this form.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

Encode = Callable[[Any], bytes]

_NULL_CELL = b"\xff\xff\xff\xff"
_FIRST_INDEX = 1


class ServerType(NamedTuple):
    """A type of the server: its numbers, and how a value of it is written."""

    oid: int
    array_oid: int
    encode: Encode


_TYPES = {
    "bigint": ServerType(20, 1016, struct.Struct("!q").pack),
    "int": ServerType(23, 1007, struct.Struct("!i").pack),
    "float8": ServerType(701, 1022, struct.Struct("!d").pack),
    "boolean": ServerType(16, 1000, struct.Struct("!?").pack),
    "text": ServerType(25, 1009, str.encode),
    "bytea": ServerType(17, 1001, bytes),
}


class Encoder(NamedTuple):
    """Writes the values of one statement's parameters."""

    oids: tuple[int, ...]
    encoders: tuple[Encode, ...]

    def encode(self, values: Sequence[object]) -> list[bytes | None]:
        """Returns the values in binary form; raises `UnicodeEncodeError` for half a character."""
        pairs = zip(self.encoders, values, strict=True)
        return [None if value is None else encode(value) for encode, value in pairs]


def encoder_of(kinds: Sequence[str]) -> Encoder:
    """Returns what writes values of these types; `bigint[]` is a list of `bigint`."""
    oids, encoders = zip(*map(_parameter, kinds), strict=True)
    return Encoder(oids, encoders)


def _parameter(kind: str) -> tuple[int, Encode]:
    server_type = _TYPES[kind.removesuffix("[]")]
    if not kind.endswith("[]"):
        return server_type.oid, server_type.encode
    return server_type.array_oid, _array_encoder(server_type)


def _array_encoder(element: ServerType) -> Encode:
    def encode(values: Sequence[object]) -> bytes:
        if not values:
            return struct.pack("!iii", 0, 0, element.oid)
        # One dimension; the flag says that there may be NULLs.
        parts = [struct.pack("!iiiii", 1, 1, element.oid, len(values), _FIRST_INDEX)]
        for value in values:
            if value is None:
                parts.append(_NULL_CELL)
            else:
                cell = element.encode(value)
                parts += (len(cell).to_bytes(4, "big"), cell)
        return b"".join(parts)

    return encode
