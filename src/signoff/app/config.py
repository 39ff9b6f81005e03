"""Shows the settings in force and where each comes from, with secrets masked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from signoff.app.home import Home
from signoff.app.setting_layers import Layer
from signoff.app.settings import Settings, settings_files

_SECRET = re.compile(r"(key|token|secrets?|password|credentials?)$", re.IGNORECASE)
"""Keys whose values are masked; not `tokens`, which is a number that users need to see."""
_PASSWORD = re.compile(r"(?<=://)[^/@]*(?=@)")
"""The user and password in a URL."""


def show_config(settings: Settings) -> Layer:
    """Returns every setting in force, by key, with secrets masked."""
    return {
        key: setting._replace(value=_mask(key, setting.value))
        for key, setting in sorted(settings.values.items())
    }


def _mask(key: str, value: Any) -> Any:
    if _SECRET.search(key) and value:
        return "***"
    return _PASSWORD.sub("***", value) if isinstance(value, str) else value


def config_files(home: Home | None, environment: Mapping[str, str]) -> list[tuple[Path, bool]]:
    """Returns the settings files, lowest precedence first, and whether each one exists."""
    files = settings_files(home, environment)
    return [(path, path.is_file()) for path, _required in files]
