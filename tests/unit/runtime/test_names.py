import pytest

from signoff.errors import UsageError
from signoff.runtime.names import checked_name, fresh_name


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("44", "'44' cannot name a run: numbers name requests"),
        ("latest", "'latest' cannot name a run: it stands for the newest one"),
        (
            "x" * 300,
            r"'x{20}\.\.\.' cannot name a run: it has 300 characters, and 100 are the most",
        ),
        ("ümlaut", "'ümlaut' cannot name a run; use the letters A to Z and a to z, digits"),
        ("-x", "beginning with a letter or digit"),
    ],
)
def test_a_name_is_refused_for_the_reason_that_holds(name: str, why: str) -> None:
    """Told to use letters, whoever typed three hundred of them would try the next hundred."""
    with pytest.raises(UsageError, match=why):
        checked_name(name)


def test_runs_without_a_name_get_one_of_their_own() -> None:
    """Started twice in one second they are still two runs."""
    names = {fresh_name("My Flow: draft & review!") for _ in range(20)}

    assert len(names) == 20
    assert all(name.startswith("my-flow-draft-review-") for name in names)
