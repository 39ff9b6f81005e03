from pathlib import Path

from signoff.surfaces.web.idempotency import LOCKS, IdempotencyKeys


def test_a_request_does_not_wait_for_one_with_another_key(tmp_path: Path) -> None:
    """The first one may start agents, which takes a minute; with one lock this would hang."""
    keys = IdempotencyKeys(tmp_path / "keys.db")
    taken = hash(("ann", "first")) % LOCKS
    # Some keys share a lock, which only makes their requests wait longer.
    other = next(name for name in map(str, range(1_000)) if hash(("ann", name)) % LOCKS != taken)

    with (
        keys.request("ann", "first", "start a", "run-a", 0.0) as first,
        keys.request("ann", other, "start b", "run-b", 0.0) as second,
    ):
        claims = [(each.made, each.repeated) for each in (first, second)]

    keys.close()
    assert claims == [("run-a", False), ("run-b", False)]
