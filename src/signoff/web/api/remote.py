"""What programs on other machines get: no paths of this machine, and no commands to type here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from signoff.app.show import RunDetails

_LOCAL = frozenset({"commands", "file", "prompt_file"})
"""What a request has for someone at this machine."""


def remote_run(details: RunDetails) -> dict[str, Any]:
    """Returns a run with the files of its result named from its folder."""
    document = details.to_json() | {"result": details.result_in(PurePosixPath())}
    del document["directory"]
    document["inbox"] = [remote_request(each) for each in document["inbox"]]
    return document


def remote_request(request: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a request without what is of use only at this machine."""
    return {name: value for name, value in request.items() if name not in _LOCAL}
