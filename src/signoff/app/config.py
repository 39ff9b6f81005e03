"""Tells what holds and where it came from; secrets are not repeated."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signoff.app.home import Home
from signoff.app.settings import Settings, user_file

_SECRET = re.compile(r"(key|token|secrets?|password|credentials?)$", re.IGNORECASE)
"""Not `tokens`: that is a number people need to see."""
_PASSWORD = re.compile(r"(?<=://)[^/@]*(?=@)")
"""Whoever logs in, with what, in an address."""


@dataclass(frozen=True)
class Setting:
    """One value that holds."""

    key: str
    value: Any
    origin: str


def show_config(settings: Settings) -> list[Setting]:
    """Returns every setting, by key."""
    return [
        Setting(
            key, "***" if _SECRET.search(key) and value.value else _told(value.value), value.origin
        )
        for key, value in sorted(settings.values.items())
    ]


def _told(value: Any) -> Any:
    """Returns a value without the password an address may hold."""
    return _PASSWORD.sub("***", value) if isinstance(value, str) else value


def config_files(home: Home | None, environment: Mapping[str, str]) -> list[tuple[Path, bool]]:
    """Returns where settings are looked for, weakest first, and whether each file is there."""
    files = [user_file(environment)]
    if home is not None:
        files.append(home.config)
    return [(path, path.is_file()) for path in files]
