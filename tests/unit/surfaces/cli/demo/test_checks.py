import pytest

from signoff.review.pure.work_order import Edit, EditKind, apply_edits
from signoff.surfaces.cli.demo.checks import FACTS, MOST_WORDS, Finding, facts, length, name, tone

GOOD = "sipwell reminds you to drink water. It is free, needs no account and comes out on 1 May."


def test_a_good_text_passes_every_check() -> None:
    """A check nothing can satisfy would keep the demo from ever ending."""
    assert [each(GOOD) for each in (facts, length, name, tone)] == [[], [], [], []]


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("", list(FACTS)),
        ("sipwell is free.", ["no-account", "date"]),
        ("Free, without an account, from May 1st.", []),
        ("Free. You don't need any account. Out on the 1st of May.", []),
        ("Freedom for your account in May.", list(FACTS)),
    ],
)
def test_facts_are_missed_whatever_words_were_used(text: str, missing: list[str]) -> None:
    """A model says things in its own words; only what it leaves out counts."""
    found = facts(text)

    assert [each["rule_id"] for each in found] == missing
    assert {each["evidence"] for each in found} <= {"OMISSION"}
    assert all(each["suggested_fix"].startswith("Say that ") for each in found)


def test_a_long_text_is_quoted_from_where_it_is_too_long() -> None:
    """The evidence is looked up in the text like any critic's."""
    text = " ".join(f"w{number}" for number in range(MOST_WORDS + 2))

    (found,) = length(text)

    assert found["evidence"] == f"w{MOST_WORDS} w{MOST_WORDS + 1}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Sipwell is here. Use SIPWELL.", "sipwell is here. Use sipwell."),
        ("Sipwell: get Sipwell, Sipwell.", "sipwell: get sipwell, sipwell."),
        ("It is a fun app.", "It is an app."),
        ("A great and simple tool.", "A tool."),
        ("It has powerful, useful reminders!!", "It has useful reminders."),
        ("a fun app, a fun app", "an app, an app"),
    ],
)
def test_the_edits_of_a_check_fix_its_findings(before: str, after: str) -> None:
    """They are made without a model, so they must leave a text that reads well."""
    found = [*name(before), *tone(before)]

    done = apply_edits(before, [_edit(each) for each in found])

    assert (done.text, done.unmatched) == (after, ())
    assert all(each["evidence"] in before for each in found)


def _edit(found: Finding) -> Edit:
    edit = found["edit"]
    return Edit(EditKind(edit["kind"]), edit["find"], edit["text"], "one")
