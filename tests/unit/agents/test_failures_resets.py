from datetime import UTC, datetime, timedelta

import pytest

from signoff.agents.failures import find_reset_time

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("usage limit reached|1794787200", datetime.fromtimestamp(1794787200, UTC)),
        ("limit · resets 3pm (UTC)", datetime(2026, 11, 15, 15, tzinfo=UTC)),
        ("limit · resets at 9:30am (UTC)", datetime(2026, 11, 16, 9, 30, tzinfo=UTC)),
        ("resets 1pm (Europe/Berlin)", datetime(2026, 11, 16, 12, 0, tzinfo=UTC)),
        ("resets Nov 20, 3pm (UTC)", datetime(2026, 11, 20, 15, tzinfo=UTC)),
        ("resets Jan 2, 12am (UTC)", datetime(2027, 1, 2, 0, tzinfo=UTC)),
        ("Try again in 3 days 2 hours 5 minutes.", NOW + timedelta(days=3, hours=2, minutes=5)),
        ("try again in 45 seconds", NOW + timedelta(seconds=45)),
        ("nothing of the kind", None),
        ("resets Feb 31, 3pm (UTC)", None),
        ("resets Foo 3, 3pm (UTC)", None),
    ],
)
def test_the_reset_time_is_read_from_the_text(text: str, moment: datetime | None) -> None:
    """A wrong time would park the run too long, or waste its retries."""
    assert find_reset_time(text, NOW) == moment


def test_a_date_without_a_zone_is_local_time() -> None:
    """Programs print times for the user of this machine."""
    found = find_reset_time("try again at Nov 16th, 2026 12:13 AM.", NOW)

    assert found is not None
    assert found == datetime(2026, 11, 16, 0, 13).astimezone()
