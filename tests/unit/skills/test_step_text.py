from signoff.skills import format_step


def test_a_step_has_a_title_instructions_and_a_command() -> None:
    """Scripts of sub-agents print their steps like the command line does."""
    assert format_step("Do this.", "run that", title="Part 1") == (
        "# Part 1\n\nDo this.\n\nWhen this step is done, run:\n\n    run that"
    )


def test_a_step_without_a_command_is_the_last() -> None:
    """An agent stops there instead of guessing."""
    text = format_step(["One.", "Two."])

    assert text.startswith("One.\n\nTwo.\n\nThis was the last step.")
