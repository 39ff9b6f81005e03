from pathlib import Path

import pytest

from signoff.surfaces.cli import main
from signoff.surfaces.cli.exits import OK


@pytest.mark.parametrize(
    ("address", "options", "role"),
    [
        ("postgresql://worker@host/team", [], "worker"),
        ("postgresql://host/team?user=worker", [], "worker"),
        ("postgresql://worker@host/team", ["--role", "other"], "other"),
        ("postgresql://host/team", [], "signoff"),
    ],
)
def test_rights_are_granted_to_the_user_of_the_address(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    address: str,
    options: list[str],
    role: str,
) -> None:
    """The role that connects needs them; one with the default name may not even exist."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIGNOFF_DATABASE", address)

    assert main(["store", "setup", "--print", *options]) == OK

    assert f'GRANT USAGE ON SCHEMA "signoff" TO "{role}";' in capsys.readouterr().out
