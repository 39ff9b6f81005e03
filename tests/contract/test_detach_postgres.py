"""What `run --detach` says about the workers of a real PostgreSQL server."""

from contextlib import closing
from pathlib import Path

import pytest

from signoff.app.home import init_home
from signoff.cli import main
from signoff.cli.exits import OK
from signoff.runtime.owner import this_process
from signoff.store.postgres.store import PostgresStore
from tests.stubs.postgres import PostgresServer

FLOW = "goal: A line about the sea.\nworkflow:\n  - {step: generate, agent: manual}\n"


@pytest.mark.parametrize(
    ("labels", "warning"),
    [
        (None, "no worker is running on this database; start one: signoff worker"),
        ([], "no worker has gpu; start one: signoff worker --capability gpu"),
        (["gpu"], ""),
    ],
)
def test_a_run_that_no_worker_can_take_is_reported_at_once(
    tmp_path: Path,
    postgres: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    labels: list[str] | None,
    warning: str,
) -> None:
    """Its agents are not mentioned: a worker checks them only when a run needs them."""
    url = postgres.new_schema()
    init_home(tmp_path, {}).home.config.write_text(f"database: {url}\n")
    (tmp_path / "flow.yaml").write_text(FLOW)
    monkeypatch.chdir(tmp_path)
    with closing(PostgresStore(url)) as store:
        if labels is not None:
            store.register(this_process(), 4, [*labels, f"folder:{tmp_path}"])

        assert main(["run", "flow.yaml", "--detach", "--needs", "gpu"]) == OK

    printed = capsys.readouterr().err
    assert ("no worker" in printed) == bool(warning)
    assert warning in printed
