"""The file of passkeys: complete, reviewable, and never half read."""

import json
import stat
import threading
from pathlib import Path

import pytest

from signoff.app.people.passkeys import (
    Passkey,
    add_passkey,
    read_passkeys,
    remove_passkey,
    to_base64url,
)
from signoff.core.errors import ConfigError, NameTaken, UnknownName


def passkey(name: str) -> Passkey:
    key = to_base64url(f"key of {name}".encode())
    return Passkey(name, "ann", to_base64url(name.encode()), key, "localhost", 1.0)


def test_passkeys_are_kept_in_a_file_that_people_can_review(tmp_path: Path) -> None:
    """A change of who may sign has to be readable in a diff."""
    path = tmp_path / "passkeys.json"
    assert read_passkeys(path) == []

    add_passkey(path, passkey("laptop"))
    add_passkey(path, passkey("phone"))

    assert read_passkeys(path) == [passkey("laptop"), passkey("phone")]
    assert passkey("laptop").fingerprint in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_removed_passkey_stays_in_the_file(tmp_path: Path) -> None:
    """What it signed must remain verifiable, and its name must never mean another key."""
    path = tmp_path / "passkeys.json"
    add_passkey(path, passkey("laptop"))

    remove_passkey(path, "laptop", 2.0)

    (found,) = read_passkeys(path)
    assert (found.is_active, found.removed_at) == (False, 2.0)
    with pytest.raises(UnknownName):
        remove_passkey(path, "laptop", 3.0)
    with pytest.raises(NameTaken):
        add_passkey(path, passkey("laptop"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"version": 2, "passkeys": []}',
        '{"version": 1}',
        '{"version": 1, "passkeys": [7]}',
        '{"version": 1, "passkeys": [{"name": "laptop"}]}',
        "[" * 100_000,
        "\udcff",
    ],
    ids=lambda text: repr(text[:40]),
)
def test_a_damaged_file_is_an_error_and_not_an_empty_list(tmp_path: Path, text: str) -> None:
    """An empty list would let anyone register the first passkey."""
    path = tmp_path / "passkeys.json"
    path.write_text(text, errors="surrogateescape")

    with pytest.raises(ConfigError):
        read_passkeys(path)


@pytest.mark.parametrize(
    ("field", "value"),
    [("public_key", "\u00e9"), ("public_key", 7), ("registered_at", "x"), ("name", "")],
)
def test_a_passkey_with_a_wrong_field_is_an_error(
    tmp_path: Path, field: str, value: object
) -> None:
    """A key that cannot be used must be noticed before someone has to sign."""
    path = tmp_path / "passkeys.json"
    add_passkey(path, passkey("laptop"))
    document = json.loads(path.read_text())
    document["passkeys"][0][field] = value
    path.write_text(json.dumps(document))

    with pytest.raises(ConfigError):
        read_passkeys(path)


def test_two_registrations_at_once_are_both_kept(tmp_path: Path) -> None:
    """Two people register at the same time, from two pages."""
    path = tmp_path / "passkeys.json"
    names = [f"key-{number}" for number in range(8)]
    threads = [threading.Thread(target=add_passkey, args=(path, passkey(each))) for each in names]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(each.name for each in read_passkeys(path)) == names
