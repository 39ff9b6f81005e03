"""Where the server finds the page that it sends people to."""

import socket
from contextlib import closing
from pathlib import Path

from signoff.app.settings.home import init_home
from signoff.surfaces.cli.commands.mcp import local_page
from signoff.surfaces.web.access import Access


def test_the_page_is_the_one_that_answers_on_this_machine(tmp_path: Path) -> None:
    """A link to a page that is no longer served helps no one."""
    home = init_home(tmp_path, {}).home
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        with closing(Access.of(home)) as access:
            access.keep_address(address)

        assert local_page(tmp_path, {}) == address
    assert local_page(tmp_path, {}) == ""


def test_without_a_page_there_is_no_link(tmp_path: Path) -> None:
    """Looking for it creates nothing."""
    assert local_page(tmp_path, {}) == ""
    home = init_home(tmp_path, {}).home

    assert local_page(tmp_path, {}) == ""
    assert not (home.path / "web").exists()
