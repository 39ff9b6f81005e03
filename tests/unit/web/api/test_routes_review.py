import httpx


async def test_findings_say_what_became_of_them(program: httpx.AsyncClient, waiting: str) -> None:
    """A program can tell an open finding from a fixed one."""
    path = f"/api/v1/runs/{waiting}/findings"

    everything = (await program.get(path)).json()["findings"]
    still_open = (await program.get(path, params={"status": "open"})).json()["findings"]

    assert [(each["severity"], each["status"]) for each in everything] == [("HIGH", "fixed")]
    assert still_open == []
    assert (await program.get(path, params={"status": "lost"})).status_code == 422
    assert (await program.get(path, params={"constraint": "other"})).status_code == 400


async def test_a_diff_names_the_findings_it_answers(
    program: httpx.AsyncClient, waiting: str
) -> None:
    """That is how an approver knows why a line changed."""
    (change,) = (await program.get(f"/api/v1/runs/{waiting}/diffs")).json()["changes"]
    (finding,) = (await program.get(f"/api/v1/runs/{waiting}/findings")).json()["findings"]

    (hunk,) = change["files"][0]["hunks"]

    assert "+Good coffee." in hunk["diff"]
    assert hunk["findings"] == [finding["id"]]
    missing = await program.get(f"/api/v1/runs/{waiting}/diffs", params={"round": 9})
    assert missing.status_code == 400


async def test_the_artifact_is_the_last_reviewed_version(
    program: httpx.AsyncClient, waiting: str
) -> None:
    """And every earlier one can be had."""
    last = (await program.get(f"/api/v1/runs/{waiting}/artifact")).json()
    first = (await program.get(f"/api/v1/runs/{waiting}/artifact", params={"round": 1})).json()

    assert list(last["files"].values()) == ["Good coffee.\n"]
    assert list(first["files"].values()) == ["The best coffee of the world.\n"]
