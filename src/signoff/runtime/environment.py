"""The environment variables that programs get, and the secrets in them, which are never stored.

A shell holds keys to many things, so programs get an allow-list of variables. Values that look
like secrets are removed from everything that programs and agents return.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

ORDINARY = frozenset(
    """
    PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR TEMP TMP
    XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME XDG_STATE_HOME XDG_RUNTIME_DIR
    SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE CURL_CA_BUNDLE
    HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy
    SYSTEMROOT COMSPEC PATHEXT USERPROFILE APPDATA LOCALAPPDATA
    """.split()
)
"""Every program gets these: paths, the language, and how to reach the network."""

TOOLS = frozenset(
    """
    PYTHONPATH VIRTUAL_ENV CONDA_PREFIX NODE_PATH JAVA_HOME GOPATH GOROOT CARGO_HOME RUSTUP_HOME
    SIGNOFF_HOME SIGNOFF_CONFIG
    """.split()
)
"""Commands and checks get these too: where compilers, interpreters and this project are."""

_SECRET_NAME = re.compile(
    r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)(_?\d+)?$", re.IGNORECASE
)
_LOGIN_IN_ADDRESS = re.compile(r"//([^/@\s:]+:[^/@\s]+)@")
_SHORTEST_SECRET = 8
"""Shorter values are words like `true`; hiding them would garble ordinary text."""
_LONGEST_WORD = 20
"""A value of letters only, up to this long, counts as a word such as `postgres`."""
_HIDDEN = re.compile(r"\[hidden: ([^\]\s]+)\]")


def program_environment(names: Iterable[str], fixed: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables a program gets: the ordinary ones, those in `names`, and `fixed`."""
    wanted = ORDINARY | frozenset(names)
    allowed = {
        name: value
        for name, value in os.environ.items()
        if name in wanted or name.startswith("LC_")
    }
    return {**allowed, **fixed}


def command_environment(names: Iterable[str], fixed: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables of a command or a check, which may need the user's tools as well."""
    return program_environment(TOOLS.union(names), fixed)


def hidden_in(text: str) -> str | None:
    """Returns the variable whose value was removed from a text, if one was.

    A text may quote the mark itself, so only the names of existing variables count.
    """
    return next((name for name in _HIDDEN.findall(text) if name in os.environ), None)


@dataclass(frozen=True)
class Secrets:
    """Values that must not be stored, each with the name of the variable that holds it."""

    named: tuple[tuple[str, str], ...] = ()
    """Name and value, the longest value first: it may contain a shorter one."""

    @classmethod
    def of(cls, environment: Mapping[str, str], keys: Iterable[str] = ()) -> Secrets:
        """Returns the secrets among some variables: by their names, in addresses, and in `keys`.

        `keys` are variables that the settings name as holding a key.
        """
        chosen, found = frozenset(keys), {}
        for name, raw in environment.items():
            value = raw.strip()
            by_name = _SECRET_NAME.search(name) is not None and not _is_word(value)
            if (by_name or name in chosen) and len(value) >= _SHORTEST_SECRET:
                found[value] = name
            found.update(dict.fromkeys(_LOGIN_IN_ADDRESS.findall(value), name))
        longest_first = sorted(found.items(), key=lambda each: len(each[0]), reverse=True)
        return cls(tuple((name, value) for value, name in longest_first))

    def hide(self, text: str) -> str:
        """Returns a text in which each secret is replaced by the name of its variable."""
        for name, value in self.named:
            if value in text:
                text = text.replace(value, f"[hidden: {name}]")
        return text

    def hide_in(self, value: Any) -> Any:
        """Returns a JSON value with the secrets removed from all its texts."""
        match value:
            case str():
                return self.hide(value)
            case dict():
                return {self.hide_in(key): self.hide_in(each) for key, each in value.items()}
            case list() | tuple():
                return [self.hide_in(each) for each in value]
            case _:
                return value

    def name_in(self, value: Any) -> str | None:
        """Returns the variable whose value appears in a JSON value, if one does."""
        if not self.named:
            return None
        match value:
            case str():
                return next((name for name, secret in self.named if secret in value), None)
            case Mapping():
                return self.name_in([*value, *value.values()])
            case list() | tuple():
                return next(filter(None, map(self.name_in, value)), None)
            case _:
                return None


class HidingStream:
    """Passes on text that comes in pieces, without secrets, even if one spans several pieces."""

    def __init__(self, secrets: Secrets, emit: Callable[[str], None]) -> None:
        self._secrets = secrets
        self._emit = emit
        self._held = ""

    def add(self, piece: str) -> None:
        """Passes on what cannot be the start of a secret, and holds back the rest."""
        text = self._secrets.hide(self._held + piece)
        cut = len(text) - self._overlap_length(text)
        self._held = text[cut:]
        # An empty piece tells that the text begins.
        if cut or not piece:
            self._emit(text[:cut])

    def close(self) -> None:
        """Passes on what was held back: nothing follows that would make it a secret."""
        if self._held:
            self._emit(self._held)
        self._held = ""

    def _overlap_length(self, text: str) -> int:
        """Returns how many characters at the end may be the start of a secret."""
        return max((_overlap(text, value) for _, value in self._secrets.named), default=0)


def _overlap(text: str, value: str) -> int:
    lengths = range(min(len(value) - 1, len(text)), 0, -1)
    return next((length for length in lengths if text.endswith(value[:length])), 0)


def _is_word(value: str) -> bool:
    return value.isalpha() and len(value) <= _LONGEST_WORD
