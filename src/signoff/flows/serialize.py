"""A flow as plain data, and back: what a run keeps of the definition it was started with.

Every field is written, whether or not it has its default, so that a later release with
other defaults reads an old run as it was. Mappings become lists of pairs: the order of
patterns decides which one holds, and an object's keys may be sorted on their way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from signoff.flows.model import GenflowConfig


def config_to_json(config: GenflowConfig) -> dict[str, Any]:
    """Returns a flow as plain data; flows that mean the same give the same."""
    written: dict[str, Any] = _write(config)
    return written


def config_from_json(raw: Mapping[str, Any]) -> GenflowConfig:
    """Reads what `config_to_json` wrote; what a later release added has its default."""
    read: GenflowConfig = _read(GenflowConfig, raw)
    return read


def _write(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return {field.name: _write(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return [[_write(key), _write(each)] for key, each in value.items()]
    if isinstance(value, tuple | list):
        return [_write(each) for each in value]
    return value


def _read(kind: Any, raw: Any) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        present = next(each for each in arguments if each is not NoneType)
        return None if raw is None else _read(present, raw)
    if origin is tuple:
        return tuple(_read(arguments[0], each) for each in raw)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {_read(arguments[0], key): _read(arguments[1], each) for key, each in raw}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(raw)
    if isinstance(kind, type) and is_dataclass(kind):
        kinds = _kinds(kind)
        return kind(**{name: _read(kinds[name], each) for name, each in raw.items()})
    return raw


@cache
def _kinds(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)
