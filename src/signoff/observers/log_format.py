"""How log records are written: as text, or as one JSON object per line."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from signoff.documents.control_characters import escape_controls, json_text
from signoff.runtime.environment import Secrets
from signoff.store.rundir.documents import timestamp

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
"""The attributes that every record has; all others are fields."""


_LINE_ENDS = {0x2028: "\\u2028", 0x2029: "\\u2029"}
"""Characters that end a line for some programs, and that JSON allows in texts."""


class FieldFormatter(logging.Formatter):
    """Writes a record with its fields on one line, without known secrets."""

    def __init__(self, *, as_json: bool, secrets: Secrets | None = None) -> None:
        super().__init__()
        self._as_json = as_json
        self._secrets = secrets or Secrets()

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line of a record."""
        fields = {k: v for k, v in vars(record).items() if k not in _OWN}
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        message, level = record.getMessage(), record.levelno
        return self.line(record.created, level, record.name, message, fields)

    def line(
        self, at: float, level: int, logger: str, message: str, fields: Mapping[str, Any]
    ) -> str:
        """Returns a line; fields without a value are left out."""
        head = {
            "time": timestamp(at),
            "level": logging.getLevelName(level).lower(),
            "logger": logger,
            "message": message,
        }
        present = {name: value for name, value in fields.items() if value is not None}
        if self._as_json:
            line = json_text({**head, **present}, ensure_ascii=True, default=str)
        else:
            line = _as_text(head, present)
        return self._secrets.hide(line)


def _as_text(head: dict[str, str], fields: dict[str, Any]) -> str:
    message = json.dumps(head["message"], ensure_ascii=False)[1:-1].replace('\\"', '"')
    shown = " ".join(f"{name}={_value(value)}" for name, value in fields.items())
    text = f"{head['time']} {head['level']:<7} {message}{shown and f'  {shown}'}"
    # Half of a surrogate pair cannot be written to a file.
    text = escape_controls(text).encode("utf-8", "backslashreplace").decode()
    return text.translate(_LINE_ENDS)


def _value(value: Any) -> str:
    """Returns a field's value; quoted if it could be read as more than one."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    plain = isinstance(value, str) and text and not set(text) & set(" \t\r\n\"'=\\")
    return text if plain or not isinstance(value, str) else json.dumps(text, ensure_ascii=False)
