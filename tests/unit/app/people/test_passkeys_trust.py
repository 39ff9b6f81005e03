"""A passkey is trusted if it is the first, or if a trusted one has let it in."""

from dataclasses import replace
from pathlib import Path

import pytest

from signoff.app.people.passkeys import (
    Passkey,
    Proof,
    check_trust,
    confirmation_options,
    created_passkey,
    read_passkeys,
    register,
    registration_options,
    remove_passkey,
)
from signoff.app.settings.home import Home
from signoff.core.errors import SignatureRefused
from tests.software_authenticator import ORIGIN, SoftwareAuthenticator, register_passkey


def confirmed(home: Home, by: SoftwareAuthenticator, name: str) -> SoftwareAuthenticator:
    """Registers a passkey that another one confirms."""
    authenticator, file = SoftwareAuthenticator(), home.passkeys
    options = registration_options(file, "secret", name, "localhost")
    created = Proof(authenticator.create(options), [ORIGIN])
    new = created_passkey("secret", name, "ann", created, 2.0)
    asked = confirmation_options(file, new)
    assert asked is not None
    register(file, new, Proof(by.sign(asked), [ORIGIN]))
    return authenticator


@pytest.fixture
def chain(tmp_path: Path) -> list[Passkey]:
    """Three passkeys, each confirmed by the one before."""
    home, first = Home(tmp_path), SoftwareAuthenticator()
    register_passkey(home, first, "first")
    confirmed(home, confirmed(home, first, "second"), "third")
    return read_passkeys(home.passkeys)


def test_trust_leads_from_passkey_to_passkey_back_to_the_first(chain: list[Passkey]) -> None:
    """A team that trusts the first one, because it was reviewed, can trust all of them."""
    for each in chain:
        check_trust(chain, each)


def test_a_link_that_is_missing_or_changed_breaks_the_chain(chain: list[Passkey]) -> None:
    """Every way to slip a passkey into the file has to show."""
    first, second, third = chain
    stranger = replace(third, public_key=first.public_key)
    renamed = replace(third, name="someone else")

    for passkeys, each in [
        ([first, replace(second, confirmation={})], replace(second, confirmation={})),
        ([first, stranger], stranger),
        ([first, second, renamed], renamed),
        ([first, third], third),
        ([third, first, second], third),
    ]:
        with pytest.raises(SignatureRefused):
            check_trust(passkeys, each)


def test_a_new_first_passkey_needs_all_others_to_be_removed(tmp_path: Path) -> None:
    """People lose their only device; the file shows that the chain was started again."""
    home = Home(tmp_path)
    register_passkey(home, SoftwareAuthenticator(), "lost")
    remove_passkey(home.passkeys, "lost", 0.5)
    register_passkey(home, SoftwareAuthenticator(), "new")
    passkeys = read_passkeys(home.passkeys)

    check_trust(passkeys, passkeys[1])

    still_there = [replace(passkeys[0], removed_at=None), passkeys[1]]
    with pytest.raises(SignatureRefused):
        check_trust(still_there, passkeys[1])
