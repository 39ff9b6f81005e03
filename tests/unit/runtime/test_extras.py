import json
import shlex
import sys
from pathlib import Path

import pytest

from signoff.runtime.extras import worded


def noted(url: str, **more: object) -> str:
    return json.dumps({"url": url, **more})


@pytest.mark.parametrize(
    "origin",
    [
        None,
        noted("file:///nowhere/signoff-1.0-py3-none-any.whl", archive_info={}),
        noted("file:///nowhere/any/more", dir_info={"editable": True}),
    ],
    ids=["index", "wheel", "gone"],
)
def test_an_extra_comes_from_the_index_where_no_checkout_is_known(origin: str | None) -> None:
    """It is where most people have it from."""
    assert worded("local", origin, has_pip=True) == "pip install 'signoff[local]'"


@pytest.mark.parametrize(("info", "option"), [({"editable": True}, "-e "), ({}, "")])
def test_an_extra_comes_from_the_checkout_that_was_installed(
    tmp_path: Path, info: dict[str, bool], option: str
) -> None:
    """The index may not have this version, or none at all."""
    checkout = tmp_path / "my checkout"
    checkout.mkdir()

    command = worded("local", noted(checkout.as_uri(), dir_info=info), has_pip=True)

    assert command == f"pip install {option}'{checkout}[local]'"


@pytest.mark.parametrize(
    ("has_uv", "tool"), [(True, "uv pip install --python {}"), (False, "pip --python {} install")]
)
def test_an_environment_without_pip_is_named_to_a_tool_that_exists(has_uv: bool, tool: str) -> None:
    """Some other pip would install it where it is of no use, and not everyone has uv."""
    command = worded("local", None, has_pip=False, has_uv=has_uv)

    assert command == f"{tool.format(shlex.quote(sys.prefix))} 'signoff[local]'"
