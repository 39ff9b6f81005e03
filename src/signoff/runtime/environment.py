"""What a program sees of this process's environment, and the secrets in it that are never stored.

A shell holds keys to many things, so programs get an allow-list of variables. Values that look
like secrets are taken out of everything that programs and agents say.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

ORDINARY = frozenset(
    """
    PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR TEMP TMP
    XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME XDG_STATE_HOME XDG_RUNTIME_DIR
    SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE CURL_CA_BUNDLE
    HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy
    SYSTEMROOT COMSPEC PATHEXT USERPROFILE APPDATA LOCALAPPDATA
    """.split()
)
"""Every program gets these: where things are, which language, how the network is reached."""

TOOLS = frozenset(
    """
    PYTHONPATH VIRTUAL_ENV CONDA_PREFIX NODE_PATH JAVA_HOME GOPATH GOROOT CARGO_HOME RUSTUP_HOME
    SIGNOFF_HOME SIGNOFF_CONFIG
    """.split()
)
"""Commands and checks get these too: where compilers, interpreters and this project are."""

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_LOGIN_IN_ADDRESS = re.compile(r"//([^/@\s]+)@")
_SHORTEST_SECRET = 8
"""Shorter values are words like `true`; hiding them would garble honest text."""


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


@dataclass(frozen=True)
class Secrets:
    """Texts that must not be seen, found by the names of the variables that hold them."""

    values: tuple[str, ...] = ()

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Secrets:
        """Returns the secrets among a program's variables, logins to proxies included."""
        found = {
            value.strip()
            for name, value in environment.items()
            if _SECRET_NAME.search(name) and len(value.strip()) >= _SHORTEST_SECRET
        }
        for value in environment.values():
            found.update(_LOGIN_IN_ADDRESS.findall(value))
        return cls(tuple(sorted(found, key=len, reverse=True)))

    def hide(self, text: str) -> str:
        """Returns a text without them."""
        for value in self.values:
            if value in text:
                text = text.replace(value, "[hidden]")
        return text
