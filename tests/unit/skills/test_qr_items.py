from typing import Any

import pytest

from signoff.skills.qr import ItemStatus, QRItem, Severity


@pytest.mark.parametrize(
    "word",
    ["MUST", "must", " Must ", "blocker", "Critical", "CRITICAL", "blocking", "fatal", "required"],
)
def test_words_for_the_worst_severity_mean_must(word: str) -> None:
    """Models use the words of other reviews."""
    assert Severity.read(word) is Severity.MUST
    assert QRItem.from_json({"id": "a", "severity": word}).severity is Severity.MUST


@pytest.mark.parametrize(
    "word", ["should", "high", "major", "nit", "low", "urgent", "", "  ", None, 7, True, [], {}]
)
def test_any_other_word_means_should(word: Any) -> None:
    """A severity never aborts a run, and no word is taken for a milder one than it may be."""
    assert Severity.read(word) is Severity.SHOULD


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("PASS", "PASS"),
        ("pass", "PASS"),
        (" Fail\n", "FAIL"),
        ("TODO", "TODO"),
        ("passed", "TODO"),
        ("done", "TODO"),
        (None, "TODO"),
        (True, "TODO"),
        (["PASS"], "TODO"),
    ],
)
def test_only_a_known_word_is_a_result(word: Any, status: str) -> None:
    """Anything else still has to be verified."""
    assert ItemStatus.read(word) == status
    assert QRItem.from_json({"id": "a", "status": word}).status is ItemStatus(status)


def test_an_item_has_all_the_fields_of_its_file() -> None:
    """What a model wrote must not be lost on the way to the reviewer."""
    entries = {
        "id": "a-2",
        "scope": "src/",
        "check": "errors are handled",
        "status": "FAIL",
        "version": 3,
        "finding": "an error is ignored",
        "parent_id": "a",
        "group_id": "errors",
        "severity": "MUST",
    }

    item = QRItem.from_json(entries)

    assert {name: getattr(item, name) for name in entries} == entries
