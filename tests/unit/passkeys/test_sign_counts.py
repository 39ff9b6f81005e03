"""Counts of signatures, which reveal copies."""

from pathlib import Path

import pytest

from signoff.passkeys.sign_counts import with_count


def test_a_check_gets_the_count_of_the_last_one(tmp_path: Path) -> None:
    """A copy of a passkey counts for itself, and shows as soon as both are used."""
    path, seen = tmp_path / "web" / "counts.json", []

    def check(count: int) -> tuple[str, int]:
        seen.append(count)
        return "signature", count + 5

    assert with_count(path, "a", check) == "signature"
    with_count(path, "a", check)
    with_count(path, "b", check)

    assert seen == [0, 5, 0]


def test_a_refused_signature_changes_no_count(tmp_path: Path) -> None:
    """Anyone can send a signature with a large count; it must not lock out the human."""
    path = tmp_path / "counts.json"

    def refuse(_count: int) -> tuple[str, int]:
        raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        with_count(path, "a", refuse)

    assert not path.exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": "x"}'])
def test_counts_that_are_lost_keep_no_one_from_signing(tmp_path: Path, text: str) -> None:
    """They are only a hint, and a signature is valid without them."""
    path = tmp_path / "counts.json"
    path.write_text(text)

    assert with_count(path, "a", lambda count: (count, 3)) == 0
