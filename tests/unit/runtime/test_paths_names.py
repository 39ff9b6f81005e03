import pytest

from signoff.core.errors import UsageError
from signoff.runtime.paths import checked_name, fresh_name


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("44", "'44' is not a valid run name: numbers are names of requests"),
        ("latest", "'latest' is not a valid run name: it means the newest run"),
        ("x" * 300, "is not a valid run name; use at most 100 letters"),
        ("ümlaut", r"'ümlaut' is not a valid run name; use at most 100 letters \(A-Z, a-z\)"),
        ("-x", "starting with a letter or digit"),
    ],
)
def test_a_name_is_refused_for_the_reason_that_holds(name: str, why: str) -> None:
    """A hint to use letters would not help a user who typed three hundred of them."""
    with pytest.raises(UsageError, match=why):
        checked_name(name)


def test_runs_without_a_name_get_one_of_their_own() -> None:
    """Started twice in one second they are still two runs."""
    names = {fresh_name("My Flow: draft & review!") for _ in range(20)}

    assert len(names) == 20
    assert all(name.startswith("my-flow-draft-review-") for name in names)
