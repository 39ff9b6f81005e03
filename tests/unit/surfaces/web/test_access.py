import stat
from pathlib import Path

import pytest

from signoff.app.settings.home import Home
from signoff.app.settings.project import Project
from signoff.core.errors import NameTaken, UnknownName, UsageError
from signoff.surfaces.web.access import (
    LINK_SECONDS,
    SESSION_SECONDS,
    Access,
    AccessScope,
    cookie_name,
)


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


def test_a_link_and_a_session_expire(tmp_path: Path) -> None:
    """A forgotten browser must not stay logged in for ever."""
    clock = Clock()
    access = Access(tmp_path / "access.db", clock)
    late, used = access.new_link("ann"), access.new_link("ann")
    secret = access.open_session(used)
    assert secret is not None

    clock.time += LINK_SECONDS

    assert access.open_session(late) is None
    assert access.session(secret) is not None
    clock.time += SESSION_SECONDS
    assert access.session(secret) is None
    access.close()
    again = Access(tmp_path / "access.db", clock)
    assert again.session(secret) is None
    again.close()


def test_a_secret_counts_only_for_what_it_is(access: Access) -> None:
    """A login link in place of a token would never be used up."""
    link, token = access.new_link("ann"), access.new_token("script", AccessScope.DECIDE)

    assert access.token(link) is None
    assert access.session(link) is None
    assert access.session(token.removeprefix("signoff-")) is None
    assert access.open_session(token.removeprefix("signoff-")) is None


def test_the_file_has_no_secret_and_no_other_reader(project: Project, access: Access) -> None:
    """Backups and other users of the machine must not get a key."""
    token = access.new_token("script", AccessScope.READ).removeprefix("signoff-")
    link = access.new_link("ann")
    folder = project.home.path / "web"

    files = list(folder.glob("access.db*"))

    assert files
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(
        secret.encode() not in path.read_bytes() for path in files for secret in (token, link)
    )
    assert (folder / ".gitignore").read_text() == "*\n"


def test_a_token_of_an_agent_never_decides(access: Access) -> None:
    """Only humans sign off."""
    with pytest.raises(UsageError, match="only humans decide"):
        access.new_token("bot", AccessScope.DECIDE, agent=True)

    assert access.tokens() == []


def test_names_of_tokens_are_unique_until_revoked(access: Access) -> None:
    """The name is the author of answers, and what is revoked."""
    access.new_token("script", AccessScope.READ)

    with pytest.raises(NameTaken):
        access.new_token("script", AccessScope.DECIDE)
    with pytest.raises(UnknownName, match="script"):
        access.revoke("other")
    access.revoke("script")

    assert access.new_token("script", AccessScope.OPERATE)


def test_each_project_has_a_cookie_of_its_own(tmp_path: Path) -> None:
    """Browsers send cookies to every port of a host, so two projects would log each other out."""
    assert cookie_name(Home(tmp_path / "a")) != cookie_name(Home(tmp_path / "b"))
