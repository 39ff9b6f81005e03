import asyncio
from typing import Any

import pytest

from signoff.core import errors
from signoff.core.outcome import Status
from signoff.pair import (
    AgentError,
    ApprovalTimeoutError,
    CompletionReason,
    ConfigurationError,
    IterationSession,
    WorkflowError,
    pair,
    resume_pair,
    run_slogan_generation,
    run_slogan_generation_with_retry,
)
from signoff.testing import FrozenClock, MemoryStore, ScriptedAgent

TASK = "eco-friendly water bottles"
FIRST, SECOND = "Hydrate Green, Live Clean", "Hydrate Green, Save Our Seas"
VAGUE = "Good rhythm but vague. Be specific about impact."


def writer(*texts: Any) -> ScriptedAgent:
    return ScriptedAgent().on("", *texts)


async def slogan(*replies: Any, **options: Any) -> tuple[IterationSession, ScriptedAgent]:
    """Runs a session in which one agent gives all replies, in turn."""
    agent = ScriptedAgent(replies)
    store = options.pop("store", None) or MemoryStore()
    session = await run_slogan_generation(
        TASK, store=store, writer=agent, reviewers=[agent], **options
    )
    return session, agent


async def test_a_session_ends_with_the_approved_slogan() -> None:
    """The happy path: feedback, a better slogan, an approval."""
    session, agent = await slogan(FIRST, VAGUE, SECOND, "SHIP IT!")

    assert session.completion_reason is CompletionReason.APPROVED
    assert session.succeeded
    assert (session.final_slogan, session.turn_count) == (SECOND, 2)
    assert [(t.turn_number, t.slogan, t.feedback, t.approved) for t in session.turns] == [
        (1, FIRST, VAGUE, False),
        (2, SECOND, None, True),
    ]
    assert session.user_input == TASK
    assert len(agent.requests) == 4


async def test_prompts_have_the_fixed_marks_of_their_role_only() -> None:
    """Stand-ins for models tell the writer from the reviewer by them."""
    _, agent = await slogan(FIRST, VAGUE, SECOND, "SHIP IT!")

    write, review, rewrite, _ = agent.prompts
    assert write == f"Create a slogan for: {TASK}"
    assert rewrite.startswith(f"Create a slogan for: {TASK}\n\n")
    assert f"Previous feedback:\n{VAGUE}" in rewrite
    assert FIRST in rewrite
    assert review.startswith(f"Please review this slogan: {FIRST}")
    assert "Please review this slogan: " not in write + rewrite
    assert "Create a slogan for: " not in review
    assert "Previous feedback:" not in write + review
    systems = [request.system or "" for request in agent.requests]
    assert "nothing else" in systems[0]
    assert '"SHIP IT!"' in systems[1]


async def test_a_text_that_stopped_changing_ends_the_session_early() -> None:
    """More turns would only cost more."""
    session, agent = await slogan("a", "no", FIRST, "no", FIRST, "no", "never asked")

    assert session.completion_reason is CompletionReason.CONVERGED
    assert (session.turn_count, session.final_slogan) == (3, FIRST)
    assert agent.remaining == 1


async def test_a_slogan_that_is_too_long_is_sent_back_once_and_then_marked() -> None:
    """A model that cannot be brief must not end the session, nor pass unnoticed."""
    session, agent = await slogan("x" * 2000, "y" * 600, "Too long.", "short", "SHIP IT!")

    first, second = session.turns
    assert (first.slogan, first.too_long) == ("y" * 600, True)
    assert (second.slogan, second.too_long) == ("short", False)
    assert "2,000 characters; use at most 500" in agent.prompts[1]
    assert len(agent.requests) == 5


async def test_an_empty_review_is_no_approval() -> None:
    """A reviewer that says nothing has approved nothing."""
    session, _ = await slogan("one", "", "two words", "SHIP IT!")

    assert session.turns[0].feedback == "The reviewer asks for changes without giving a reason."
    assert session.final_slogan == "two words"


async def test_a_cut_off_review_is_feedback_and_never_an_approval() -> None:
    """The rest of "SHIP IT, but ..." is missing; the beginning still helps the writer."""
    cut_off = errors.AgentBadOutput("cut off", partial="SHIP IT! Wait, the")
    half = errors.AgentBadOutput("cut off", partial="The rhythm is")
    session, _ = await slogan("one", cut_off, "two words", half, "three little words", "SHIP IT!")

    assert [t.feedback for t in session.turns] == ["SHIP IT! Wait, the", "The rhythm is", None]


async def test_a_cut_off_slogan_is_kept_and_marked() -> None:
    """Its reviewer can ask for a shorter one."""
    cut_off = errors.AgentBadOutput("cut off", partial="an endless slogan that")
    session, _ = await slogan(cut_off, cut_off, "Shorter.", "short", "SHIP IT!")

    assert (session.turns[0].slogan, session.turns[0].too_long) == ("an endless slogan that", True)


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ('"Sip Green"', "Sip Green"),
        ("\u201cSip Green\u201d", "Sip Green"),
        ("Sip Green\n\nThis slogan is short.", "Sip Green"),
        ("Sip\nGreen", "Sip\nGreen"),
        ('Say "Green" and "Go"', 'Say "Green" and "Go"'),
        ('"Green" is "Go"', '"Green" is "Go"'),
    ],
)
async def test_a_slogan_is_one_paragraph_without_quotation_marks_around_it(
    reply: str, text: str
) -> None:
    """Small models explain what they wrote, whatever they are told."""
    session, _ = await slogan(reply, "SHIP IT!")

    assert session.final_slogan == text


async def test_a_strict_session_needs_the_phrase_alone() -> None:
    """Chatty reviewers approve too easily."""
    session, _ = await slogan("one", "Perfect! SHIP IT!", "two words", "SHIP IT!", approve="strict")

    assert session.turn_count == 2


async def test_a_slogan_with_the_phrase_does_not_approve_itself() -> None:
    """The reviewer repeats the slogan, which is material and not a verdict."""
    session, _ = await slogan("Box it. Ship it!", "Box it. Ship it!", "two words", "SHIP IT!")

    assert session.turn_count == 2


async def test_require_approval_raises_with_the_session() -> None:
    """For programs that cannot use anything else."""
    with pytest.raises(ApprovalTimeoutError) as raised:
        await slogan("a", "no", max_turns=1, require_approval=True)

    assert raised.value.session is not None
    assert raised.value.session.turns[0].slogan == "a"


@pytest.mark.parametrize(
    ("options", "problems"),
    [
        ({"max_turns": 0}, ["max_turns"]),
        ({"max_turns": 11}, ["max_turns"]),
        ({"max_turns": 0, "temperature": 3}, ["max_turns", "temperature"]),
        ({"base_url": "nowhere", "temperature": -1}, ["temperature", "base_url"]),
        ({"request_timeout": 301, "max_tokens": 0}, ["max_tokens", "request_timeout"]),
        ({"verdict": "vote", "checks": ["words"]}, ["checks", "verdict"]),
        ({"colour": "red"}, ["colour"]),
    ],
)
async def test_all_mistakes_are_reported_together_and_nothing_is_started(
    options: dict[str, Any], problems: list[str]
) -> None:
    """Fixing one mistake to find the next is tedious."""
    store = MemoryStore()

    with pytest.raises(ConfigurationError) as raised:
        await slogan(store=store, **options)

    found = str(raised.value)
    assert [name for name in problems if name in found] == problems
    assert len(raised.value.problems) == len(problems)
    assert list(store.rows()) == []


@pytest.mark.parametrize("task", ["", " \n", "x" * 501])
async def test_the_input_of_a_slogan_has_1_to_500_characters(task: str) -> None:
    """A whole document as input is a mistake."""
    with pytest.raises(ConfigurationError, match="task"):
        await run_slogan_generation(task, store=MemoryStore(), writer=ScriptedAgent())


async def test_an_unknown_agent_is_reported_with_the_known_ones() -> None:
    """A typo must not start anything."""
    with pytest.raises(ConfigurationError, match="unknown agent 'cluade'; valid names: ollama"):
        await pair(TASK, writer="cluade", store=MemoryStore())


async def test_server_values_are_refused_for_other_agents() -> None:
    """A value that reaches no model would be a silent lie."""
    with pytest.raises(ConfigurationError, match="temperature"):
        await slogan(temperature=0.5)


async def test_all_reviewers_have_to_approve_and_the_writer_learns_who_objects() -> None:
    """Each looks at its own aspect."""
    author = ScriptedAgent(["one", "two words"])
    sound = ScriptedAgent(["SHIP IT!", "SHIP IT!"])
    facts = ScriptedAgent(["Bottles are not edible.", "SHIP IT!"])

    session = await pair(
        TASK,
        preset="slogan",
        writer=author,
        reviewers=[(sound, "rhythm"), (facts, "facts")],
        store=MemoryStore(),
    )

    assert session.turns[0].feedback == "facts: Bottles are not edible."
    assert "facts: Bottles are not edible." in author.prompts[1]
    assert [each.reviewer for each in session.turns[0].reviews] == ["rhythm", "facts"]
    assert "Look only at this: facts" in facts.prompts[0]
    assert session.final_slogan == "two words"


async def test_a_structured_verdict_decides_and_scores() -> None:
    """Agents that can be held to a schema are asked for an object."""
    author = writer("one", "two words", "three little words")
    critic = SchemaAgent(
        [
            {"approved": False, "feedback": "Longer.", "score": 7},
            {"approved": True, "feedback": "But the end is weak.", "score": 4},
            "SHIP IT!",
        ]
    )

    session = await pair(TASK, writer=author, reviewers=[critic], store=MemoryStore())

    assert [turn.score for turn in session.turns] == [7, 4, None]
    assert session.turns[1].feedback == "But the end is weak."
    assert session.succeeded
    assert critic.requests[0].schema is not None
    assert len(critic.requests) == 3


async def test_the_task_of_a_text_reaches_the_writer_unchanged() -> None:
    """Users write their own prompts."""
    author, critic = writer("A note."), writer("SHIP IT!")

    session = await pair(
        "Write a note.\nTwo lines.",
        writer=author,
        reviewers=[critic],
        criteria="no jargon",
        store=MemoryStore(),
    )

    assert author.prompts == ["Write a note.\nTwo lines."]
    assert "It has to meet these criteria: no jargon" in critic.prompts[0]
    assert session.final_slogan == "A note."


async def test_functions_and_checks_can_take_the_place_of_a_reviewer() -> None:
    """What can be computed needs no model."""
    author = writer("one two three four", "amazing water", "pure water")

    def at_most_two_words(text: str) -> str:
        return "Use two words." if len(text.split()) > 2 else ""

    session = await pair(
        TASK,
        writer=author,
        reviewers=[at_most_two_words],
        checks=["avoids=amazing", "contains=water"],
        store=MemoryStore(),
    )

    assert session.final_slogan == "pure water"
    feedback = session.turns[0].feedback or ""
    assert 'checks: It does not contain "water"' in feedback
    assert "reviewer: Use two words." in feedback
    assert len(author.requests) == 3


async def test_a_function_can_decide_about_replies() -> None:
    """Reviewers that were trained to another phrase."""
    session, _ = await slogan("one", "nope", "two words", "LGTM", approve=lambda r: r == "LGTM")

    assert [t.feedback for t in session.turns] == ["nope", None]


async def test_a_retry_resumes_the_same_run_and_repeats_no_finished_call() -> None:
    """Each of these calls was paid for."""
    store, clock = MemoryStore(), FrozenClock()
    down = errors.AgentTimeout("down")
    author = ScriptedAgent(["one", down, down, "two words"])
    critic = ScriptedAgent(["no", "SHIP IT!"])

    session = await run_slogan_generation_with_retry(
        TASK, clock=clock, store=store, writer=author, reviewers=[critic]
    )

    assert session.final_slogan == "two words"
    assert [turn.slogan for turn in session.turns] == ["one", "two words"]
    assert len(list(store.rows())) == 1
    assert len(author.requests) == 4
    assert clock.slept == [2.0, 4.0]


async def test_the_last_attempt_raises_with_the_session() -> None:
    """The turns made until then are not lost."""
    clock, down = FrozenClock(), errors.AgentTimeout("the server is down")
    author, critic = ScriptedAgent(["one", down, down, down]), ScriptedAgent(["no"])

    with pytest.raises(
        WorkflowError, match="Failed after 3 attempts: the server is down"
    ) as raised:
        await run_slogan_generation_with_retry(
            TASK, 3, clock=clock, store=MemoryStore(), writer=author, reviewers=[critic]
        )

    assert raised.value.session is not None
    assert [turn.slogan for turn in raised.value.session.turns] == ["one"]
    assert clock.slept == [2.0, 4.0]


async def test_an_error_that_no_retry_helps_is_raised_at_once() -> None:
    """Waiting for a key to appear helps nobody."""
    clock = FrozenClock()
    agent = ScriptedAgent([errors.AgentAuth("no key")])

    with pytest.raises(AgentError, match="no key"):
        await run_slogan_generation_with_retry(TASK, clock=clock, store=MemoryStore(), writer=agent)

    assert clock.slept == []


async def test_configuration_errors_are_not_retried() -> None:
    """They are the same on the next attempt."""
    clock = FrozenClock()

    with pytest.raises(ConfigurationError):
        await run_slogan_generation_with_retry(" ", clock=clock, store=MemoryStore())
    with pytest.raises(ConfigurationError):
        await run_slogan_generation_with_retry(TASK, 0, clock=clock, store=MemoryStore())

    assert clock.slept == []


async def test_a_pair_is_a_run_like_any_other() -> None:
    """It is limited, listed and resumed by the same means."""
    store = MemoryStore()
    author, critic = writer("one", "two words", "three words now"), writer("no", "no", "SHIP IT!")

    session = await pair(
        TASK, writer=author, reviewers=[critic], name="n", limits={"calls": 3}, store=store
    )

    assert store.row("n").status is Status.BUDGET
    assert session.completion_reason is None
    assert [turn.slogan for turn in session.turns] == ["one"]
    resumed = await resume_pair(
        "n", writer=author, reviewers=[critic], limits={"calls": 9}, store=store
    )
    assert resumed.final_slogan == "three words now"
    assert len(author.requests) == 3


class SchemaAgent(ScriptedAgent):
    """An agent whose model is held to a schema."""

    capabilities = ScriptedAgent.capabilities.__class__(json_schema=True)


async def test_two_sessions_at_once_do_not_mix() -> None:
    """An override in one call must never reach the other."""
    agents = {name: writer(f"text of {name}") for name in "ab"}
    store = MemoryStore()

    sessions = await asyncio.gather(
        *(
            pair(name, writer=agent, reviewers=[writer("SHIP IT!")], model_name=None, store=store)
            for name, agent in agents.items()
        )
    )

    assert [each.final_slogan for each in sessions] == ["text of a", "text of b"]
    assert [each.user_input for each in sessions] == ["a", "b"]
