import http.client
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from signoff.core.errors import ConfigError, StoreDamaged
from signoff.store.sqlite import MemoryStore
from signoff.views import metrics_server
from signoff.views.metrics_server import FRESH_SECONDS, MetricsServer
from signoff.views.queued import ObserverSetup


class Database:
    """Counts how often the metrics are computed."""

    def __init__(self) -> None:
        self.read = 0
        self.damaged = False

    def text(self, _store: object) -> str:
        if self.damaged:
            raise StoreDamaged("bad")
        self.read += 1
        return f"signoff_runs {self.read}\n"


@pytest.fixture
def database() -> Database:
    return Database()


@pytest.fixture
def server(database: Database) -> Iterator[MetricsServer]:
    with closing(serving(database, hosts=["metrics.example"])) as server:
        yield server


def serving(database: Database, **options: Any) -> MetricsServer:
    setup = ObserverSetup(open_store=MemoryStore, folder=Path(), metrics_text=database.text)
    return MetricsServer(setup, **{"port": 0, **options})


def answer(
    server: MetricsServer, path: str = "/metrics", method: str = "GET", host: str | None = None
) -> tuple[int, str]:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)) as connection:
        connection.request(method, path, headers={"Host": host} if host is not None else {})
        response = connection.getresponse()
        return response.status, response.read().decode()


def test_the_metrics_are_served_as_they_are_in_the_database(
    server: MetricsServer, database: Database
) -> None:
    """They are those of `signoff metrics`."""
    assert answer(server) == (200, "signoff_runs 1\n")
    assert answer(server, "/metrics?x=1")[0] == 200


def test_many_readers_at_once_read_the_database_once(server: MetricsServer) -> None:
    """A client that asks a hundred times a second must not slow down the run."""
    assert {server.text(10.0) for _ in range(100)} == {"signoff_runs 1\n"}
    assert server.text(10.0 + FRESH_SECONDS) == "signoff_runs 2\n"


@pytest.mark.parametrize("host", ["evil.example", "", "127.0.0.1.evil.example", "[::2]:80"])
def test_a_page_in_a_browser_cannot_read_them_under_its_own_name(
    server: MetricsServer, host: str, database: Database
) -> None:
    """A name that resolves to this machine is how a web page gets around the browser's rules."""
    code, text = answer(server, host=host)

    assert code == 403
    assert "hosts" in text
    assert database.read == 0


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9464", "[::1]:1", "metrics.example:1"])
def test_the_names_of_this_machine_and_of_the_settings_are_answered(
    server: MetricsServer, host: str
) -> None:
    """Prometheus reaches it under the name that its operator has chosen."""
    assert answer(server, host=host)[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [("GET", "/", 404), ("GET", "/metrics/../etc", 404), ("POST", "/metrics", 405),
     ("DELETE", "/metrics", 405), ("GET", "/" + "x" * 70_000, 414)],
)  # fmt: skip
def test_nothing_else_is_served(
    server: MetricsServer, method: str, path: str, code: int, database: Database
) -> None:
    """It is a page to read, and nothing on it can be changed."""
    assert answer(server, path, method)[0] == code
    assert database.read == 0


def test_a_database_that_cannot_be_read_is_an_answer_without_details(
    server: MetricsServer, database: Database
) -> None:
    """A traceback would show paths of this machine to whoever asks."""
    database.damaged = True

    assert answer(server) == (503, "the database cannot be read\n")


def test_clients_that_say_nothing_do_not_keep_others_out(server: MetricsServer) -> None:
    """Each is answered by a thread of its own."""
    silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]

    assert answer(server)[0] == 200

    for each in silent:
        each.close()


def test_it_is_on_the_loopback_address_and_stops_with_the_command(database: Database) -> None:
    """Nothing on the network may read it unless the settings say so."""
    server = serving(database)
    assert server._server.server_address[0] == "127.0.0.1"

    server.close()

    with pytest.raises(OSError, match="refused"):
        answer(server)


def test_a_port_that_is_in_use_is_reported(server: MetricsServer, database: Database) -> None:
    """The run goes on without it; see `build_observers`."""
    with pytest.raises(OSError, match="in use"):
        serving(database, port=server.port)


@pytest.mark.parametrize(
    "options", [{"port": -1}, {"port": 70_000}, {"port": "x"}, {"port": True}, {"hosts": "name"}]
)
def test_wrong_settings_are_explained(options: dict[str, Any], database: Database) -> None:
    """They are found when the command starts, not when Prometheus asks."""
    with pytest.raises(ConfigError, match="must be"):
        serving(database, **options)


def test_without_the_extra_it_says_how_to_install_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that answers 503 for ever would look like a broken database."""
    monkeypatch.setattr(metrics_server, "find_spec", lambda _name: None)

    with pytest.raises(ConfigError, match=r"\[prometheus\]"):
        serving(database)
