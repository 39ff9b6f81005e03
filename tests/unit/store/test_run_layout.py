from dataclasses import replace

from signoff.store.run_layout import AgentCall, FileNames, Layout, file_name_part

ASKED = AgentCall(
    step="draft",
    phase="generate",
    agent="claude",
    iteration=1,
    visit=1,
    attempt=1,
    scope="",
    key="ask",
)


def prompts(*calls: AgentCall) -> list[str]:
    names = FileNames(Layout())
    return [names.call_files(call).prompt.removeprefix("iterations/") for call in calls]


def test_the_difference_is_added_when_two_calls_would_share_a_file() -> None:
    """A prompt that the next one overwrites cannot be inspected."""
    told_apart = prompts(
        ASKED,
        replace(ASKED, key="polish"),
        replace(ASKED, visit=2),
        replace(ASKED, attempt=2),
        replace(ASKED, key="polish", visit=2),
    )

    assert told_apart == [
        "1/prompt_draft_claude.txt",
        "1/prompt_draft_claude_polish.txt",
        "1/prompt_draft_claude_time-2.txt",
        "1/prompt_draft_claude_attempt-2.txt",
        "1/prompt_draft_claude_polish_time-2.txt",
    ]


def test_the_steps_name_is_added_when_a_layout_leaves_it_out() -> None:
    """A notation that names files by phase has two steps of one phase in a round."""

    class ByPhase(Layout):
        def prompt(self, asked: AgentCall) -> str:
            return f"iteration-{asked.iteration}/{asked.phase}-prompt.md"

        def reply(self, asked: AgentCall) -> str:
            return f"iteration-{asked.iteration}/{asked.phase}-response.md"

    names = FileNames(ByPhase())
    names.call_files(ASKED)

    files = names.call_files(replace(ASKED, step="second_draft"))

    assert files.prompt == "iteration-1/generate-prompt_second_draft.md"
    assert files.reply == "iteration-1/generate-response_second_draft.md"


def test_items_of_a_fan_out_have_names_from_the_first_on() -> None:
    """The first of eight critics must not look like the only one."""
    items = [replace(ASKED, scope=f"critics[{n}]") for n in (0, 1)]

    assert prompts(*items) == [
        "1/prompt_draft_claude_critics-0.txt",
        "1/prompt_draft_claude_critics-1.txt",
    ]


def test_names_that_look_the_same_on_disk_are_numbered() -> None:
    """Steps `a/b`, `a b` and `A-B` are three steps, but one file name."""
    calls = [replace(ASKED, step=step) for step in ("a/b", "a b", "A-B")]

    told_apart = {name.casefold() for name in prompts(*calls)}

    assert len(told_apart) == 3


def test_many_visits_are_named_without_a_search() -> None:
    """A step visited a thousand times in one round must not make naming quadratic."""
    names = prompts(*(replace(ASKED, visit=n) for n in range(1, 1001)))

    assert len(set(names)) == 1000
    assert names[-1] == "1/prompt_draft_claude_time-1000.txt"


def test_a_file_name_keeps_letters_of_every_script_but_no_separators() -> None:
    """Authors name steps in their own language, and paths contain these names."""
    words = [
        file_name_part(text)
        for text in ("größe", "../../etc", "a\\b:c\0d", "日本", "...", "", "x" * 99)
    ]

    assert words == ["größe", "etc", "a-b-c-d", "日本", "x", "x", "x" * 60]


def test_a_steps_file_keeps_its_name_until_another_step_uses_it() -> None:
    """A step that writes its file again must not get a second one."""
    names = FileNames(Layout())

    placed = [names.step_path("1/a.md", step) for step in ("fix", "polish", "fix", "polish")]

    assert placed == ["1/a.md", "1/a_polish.md", "1/a.md", "1/a_polish.md"]
