"""Which files a constraint is about."""

from signoff.review.pure.constraint import Constraint


def test_a_constraint_without_paths_applies_to_every_file() -> None:
    assert Constraint("tone").applies_to("a.py")
    assert not Constraint("tone", paths=("*.md",)).applies_to("a.py")
    assert Constraint("tone", paths=("*.md",)).applies_to("")
