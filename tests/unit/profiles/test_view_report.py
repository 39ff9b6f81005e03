from signoff.profiles.view import report


def artifact(path: str, iteration: int) -> dict[str, object]:
    return {"path": path, "iteration": iteration, "phase": "generate", "sha256": "0" * 64}


def test_the_files_of_the_last_iteration_are_listed() -> None:
    """Earlier versions are in their own folders."""
    files = [artifact("iteration-1/code/a", 1), artifact("iteration-2/code/a", 2)]

    shown = report({"artifacts": files, "verdict": "PASS"}, {})

    assert shown.summary == "last review: PASS\ngenerated files: 1 in iteration-2/code/"
    assert shown.details == "iteration-2/code/a"
    assert shown.facts == {"verdict": "PASS", "artifacts": files}


def test_an_override_is_shown_with_its_author_and_the_verdict() -> None:
    """A session that a human completed must not look like one that passed."""
    overrides = [
        {"round": 1, "verdict": None, "decided": "FAIL", "by": "ann", "reason": ""},
        {"round": 2, "verdict": "FAIL", "decided": "PASS", "by": "", "reason": "late"},
    ]

    shown = report({"verdict": "FAIL", "overrides": overrides}, {})

    assert shown.summary.splitlines() == [
        "last review: FAIL",
        "round 1: ann decided FAIL (the review says neither PASS nor FAIL)",
        "round 2: a human decided PASS (the review says FAIL)",
    ]
    assert shown.facts["overrides"] == overrides
