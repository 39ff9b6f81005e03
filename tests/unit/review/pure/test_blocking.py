import pytest

from signoff.review.pure.blocking import blocking_at, relaxing_table


def test_each_row_of_a_table_counts_until_the_next() -> None:
    """A gap in a table must not turn a review off."""
    table = {1: ("worst", "bad"), 4: ("worst",)}

    found = [blocking_at(iteration, table) for iteration in range(1, 7)]

    assert found == [{"worst", "bad"}] * 3 + [{"worst"}] * 3


@pytest.mark.parametrize("iteration", [-1, 0, 1])
def test_an_iteration_before_the_first_row_is_as_strict_as_that(iteration: int) -> None:
    """A mistake in counting must not let anything pass."""
    assert blocking_at(iteration, {2: ("worst",), 3: ()}) == {"worst"}


def test_the_worst_severity_always_blocks() -> None:
    """A table with many rows would otherwise end without a review."""
    assert relaxing_table(("worst", "bad"), (1, 2, 3, 4)) == {
        1: ("worst", "bad"),
        2: ("worst",),
        3: ("worst",),
        4: ("worst",),
    }
