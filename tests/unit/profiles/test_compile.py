from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from signoff.agents.base import KnownAgent
from signoff.core.outcome import Status
from signoff.core.step import Edge
from signoff.errors import ConfigError, InvalidWorkflow, ProviderError, SignoffError
from signoff.notation import CompileContext
from signoff.profiles import (
    AIProvider,
    AIProviderFactory,
    AIProviderResult,
    StandardsProvider,
    StandardsProviderFactory,
    TransitionTable,
    WorkflowPhase,
)
from signoff.profiles.compile import resolve
from signoff.profiles.library.python_module.profile import CONTEXT_SCHEMA
from signoff.profiles.session import STANDARDS_PARAM, ProfileError, step_id
from signoff.profiles.transitions import SessionCommand
from tests.unit.profiles.local_profiles import profile_source
from tests.unit.profiles.session_fixture import (
    PROFILE,
    ProbeProfile,
    SessionFixture,
    agent,
    register_approver,
    review,
)

AUTOMATIC: dict[str, Any] = {
    "providers": {"default": "claude"},
    "approval": {"default_approver": "skip"},
}

HOUSE_RULES = """
from signoff.profiles import StandardsProvider, StandardsProviderFactory


class HouseRules(StandardsProvider):
    def validate(self):
        pass

    def create_bundle(self, context, connection_timeout=None, response_timeout=None):
        return "Be brief."
"""


def test_the_graph_has_exactly_the_edges_of_the_table(tmp_path: Path) -> None:
    """No other code decides where a session goes; `cancel` is the engine's for all runs."""
    workflow = SessionFixture(tmp_path).workflow
    expected = {
        (step_id(phase, stage), step_id(row.phase, row.stage) if row.stage else None)
        for (phase, stage, command), row in TransitionTable.rows.items()
        if stage is not None and command is not SessionCommand.CANCEL
    }

    edges = {
        (step.id, edge.to)
        for step in workflow.steps.values()
        for edge in step.next.values()
        if isinstance(edge, Edge)
    }

    assert edges == expected
    assert sum(len(step.next) for step in workflow.steps.values()) == len(expected)
    start = TransitionTable.get(WorkflowPhase.INIT, None, "init")
    assert start is not None
    assert start.stage is not None
    assert workflow.entry_point == step_id(start.phase, start.stage)


@pytest.mark.parametrize("most", [1, 2, 3, 60])
def test_a_review_that_never_passes_ends_at_the_limit_where_it_is(
    tmp_path: Path, most: int
) -> None:
    """max_iterations N allows N reviews and N - 1 revisions."""
    session = SessionFixture(tmp_path, max_iterations=most, **AUTOMATIC)
    model = agent(lambda request: review("FAIL", 1) if "Review" in request.prompt[:7] else "text")

    state = session.start(claude=model)

    prompts = [prompt.split()[0] for prompt in model.prompts]
    assert (prompts.count("Review"), prompts.count("Revise")) == (most, most - 1)
    assert session.status is Status.LIMIT
    assert (state.phase, state.stage, state.status) == ("review", "response", "failed")
    assert (state.current_iteration, state.pending_approval) == (most, False)
    assert f"iteration-{most + 1}" not in {path.split("/")[0] for path in session.files}


def test_options_beat_the_settings_and_claude_code_means_claude(tmp_path: Path) -> None:
    """A session's own providers are those of the command line."""
    session = SessionFixture(tmp_path, providers={"default": "codex", "reviewer": "claude-code"})
    session.options = {"planner": "claude-code", "task_id": "T-7", "dev": "ann"}

    state = session.start(claude=agent("a plan"))

    assert state.ai_providers == {
        "planner": "claude",
        "generator": "codex",
        "reviewer": "claude",
        "reviser": "codex",
    }
    assert state.metadata == {"task_id": "T-7", "dev": "ann"}


@pytest.mark.parametrize(
    ("options", "settings", "names"),
    [
        ({"planner": "nobody"}, {}, ["planner", "'nobody'"]),
        ({}, {"providers": {"reviser": "nobody"}}, ["profiles.providers.reviser", "'nobody'"]),
        (
            {},
            {"approval": {"stages": {"plan.prompt": "nobody"}}},
            ["profiles.approval.stages.plan.prompt", "'nobody'", "skip"],
        ),
    ],
)
def test_unknown_providers_and_approvers_are_refused_with_the_valid_ones(
    tmp_path: Path, options: dict[str, str], settings: dict[str, Any], names: list[str]
) -> None:
    """A typo is found before anything starts."""
    session = SessionFixture(tmp_path)
    context = CompileContext(
        root=tmp_path,
        home=session.fixture.home.path,
        options=options,
        settings={"profiles": settings},
        agent_names=["claude", "manual"],
    )

    with pytest.raises(InvalidWorkflow) as error:
        resolve(PROFILE, context)

    assert all(name in str(error.value) for name in [*names, "claude"])


def test_the_criteria_of_an_approver_come_from_its_file(tmp_path: Path) -> None:
    """What a project checks at a gate is its own."""
    (tmp_path / "criteria.md").write_text("Every table has a key.\n")
    stages = {"plan.prompt": {"approver": "codex", "criteria_file": "criteria.md"}}
    session = SessionFixture(tmp_path, approval={"stages": stages})
    judge = agent("DECISION: APPROVED")

    session.start(codex=judge)

    assert "Every table has a key." in judge.prompts[0]


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_criteria_file_that_cannot_be_read_names_the_setting(
    tmp_path: Path, content: bytes | None
) -> None:
    """A gate without its criteria would approve too much."""
    if content is not None:
        (tmp_path / "criteria.md").write_bytes(content)
    stages = {"plan.prompt": {"approver": "codex", "criteria_file": "criteria.md"}}

    with pytest.raises(ConfigError, match=r"stages\.plan\.prompt\.criteria_file: .*criteria\.md"):
        _ = SessionFixture(tmp_path, approval={"stages": stages}).workflow


class NotReady(AIProvider):
    """Has no key."""

    def validate(self) -> None:
        raise ProviderError("the key is missing")

    def generate(self, prompt: str, context: Mapping[str, Any]) -> AIProviderResult | None:
        return None


class NoStandards(StandardsProvider):
    """Cannot reach its source."""

    def validate(self) -> None:
        """Is configured."""

    def create_bundle(self, *_args: Any, **_options: Any) -> str:
        raise ProviderError("the standards vanished")


class Raising(ProbeProfile):
    def generate_planning_prompt(self, context: Mapping[str, Any]) -> str:
        raise RuntimeError("no template")


class ReturningNone(ProbeProfile):
    def generate_planning_prompt(self, context: Mapping[str, Any]) -> str:
        return None  # type: ignore[return-value]


class WithStandards(ProbeProfile):
    def get_standards_config(self, context: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"provider": "no-standards"}


class UnknownStandards(ProbeProfile):
    def get_standards_config(self, context: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"provider": "nowhere"}


class Strict(ProbeProfile):
    schema: ClassVar = {
        "subject": {"type": "string", "required": True, "choices": ["sea", "sky"]},
        "count": {"type": "int", "required": True},
    }


@pytest.mark.parametrize(
    ("profile", "params", "settings", "problems"),
    [
        (Raising, {}, {}, ["Raising.generate_planning_prompt", "no template"]),
        (ReturningNone, {}, {}, ["ReturningNone.generate_planning_prompt", "None"]),
        (WithStandards, {}, {}, ["the standards vanished"]),
        (UnknownStandards, {}, {}, ["nowhere", "scoped-layer-fs", "yaml-rules"]),
        (Strict, {"subject": "mud", "count": "x"}, {}, ["subject", "sea", "sky", "count"]),
        (Strict, {}, {}, ["subject", "count"]),
        (ProbeProfile, {"colour": "red"}, {}, ["colour"]),
        (ProbeProfile, {}, {"providers": {"reviser": "not-ready"}}, ["the key is missing"]),
    ],
)
def test_a_start_that_fails_leaves_nothing_behind(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    profile: type[ProbeProfile],
    params: dict[str, Any],
    settings: dict[str, Any],
    problems: list[str],
) -> None:
    """No run, no folder and no request: the user corrects the input and starts again."""
    monkeypatch.chdir(tmp_path)
    AIProviderFactory.register("not-ready", NotReady)
    StandardsProviderFactory.register("no-standards", NoStandards)
    session = SessionFixture(tmp_path, profile, **settings)

    with pytest.raises(SignoffError) as error:
        session.start(params)

    assert all(problem in str(error.value) for problem in problems)
    with session.fixture.project() as project:
        assert project.store.rows() == []
        assert project.store.items() == []
    assert not session.folder.exists()
    assert not (tmp_path / "written.py").exists()


def test_the_standards_are_read_once(tmp_path: Path) -> None:
    """A session must not see two versions of them."""
    created = []

    class Counting(StandardsProvider):
        def validate(self) -> None:
            """Is configured."""

        def create_bundle(self, *_args: Any, **_options: Any) -> str:
            created.append(self.config)
            return f"rules, version {len(created)}\n"

    class Ruled(ProbeProfile):
        def get_standards_config(self, context: Mapping[str, Any]) -> Mapping[str, Any]:
            return {"provider": "counting", "subject": context["subject"]}

        def generate_planning_prompt(self, context: Mapping[str, Any]) -> str:
            return "{{STANDARDS}}"

        generate_review_prompt = generate_planning_prompt

    StandardsProviderFactory.register("counting", Counting)
    session = SessionFixture(tmp_path, Ruled, approval={"default_approver": "skip"})
    session.start()

    session.approve("a plan")
    state = session.approve("waves")

    assert [config["subject"] for config in created] == ["the sea"]
    assert session.text("standards-bundle.md") == "rules, version 1\n"
    assert session.text("iteration-1/review-prompt.md") == "rules, version 1\n"
    assert "standards_bundle" not in state.context


def test_another_profile_may_register_the_standards_provider_of_the_settings(
    tmp_path: Path,
) -> None:
    """A team's own standards apply to shipped profiles too."""
    folder = tmp_path / ".signoff" / "profiles"
    folder.mkdir(parents=True)
    register = "StandardsProviderFactory.register('house-rules', HouseRules)"
    (folder / "house.py").write_text(profile_source(first=HOUSE_RULES, tail=register))
    context = CompileContext(
        root=tmp_path,
        home=tmp_path / ".signoff",
        agents={"manual": KnownAgent("manual")},
        settings={"profiles": {"standards_provider": "house-rules"}},
    )

    workflow = resolve("python-module", context)

    assert workflow.prepare is not None
    params = workflow.prepare(
        {
            **{name: field.get("default") for name, field in CONTEXT_SCHEMA.items()},
            "module": "greet",
            "description": "Greets.",
        }
    )
    assert params[STANDARDS_PARAM] == "Be brief."


def test_a_changed_setting_is_another_definition(tmp_path: Path) -> None:
    """A session under way is never continued under other rules without a word."""
    register_approver("probe-approver")
    session = SessionFixture(tmp_path)
    first = session.workflow.digest

    session.settings = {"approval": {"stages": {"plan.prompt": "probe-approver"}}}

    assert session.workflow.digest != first
    session.settings = {}
    assert session.workflow.digest == first


def test_a_profile_that_cannot_be_created_is_an_error_that_names_it(tmp_path: Path) -> None:
    """Its constructor is the author's code."""

    class Opening(ProbeProfile):
        def __init__(self) -> None:
            self.text = (tmp_path / "templates.md").read_text()

    with pytest.raises(ProfileError, match=r"Opening\(\) failed: .*templates.md"):
        _ = SessionFixture(tmp_path, Opening).workflow


def test_a_provider_that_cannot_be_created_is_an_error_that_names_it(tmp_path: Path) -> None:
    """A missing key often shows there."""

    class Keyless(NotReady):
        def __init__(self) -> None:
            raise KeyError("API_KEY")

    AIProviderFactory.register("keyless", Keyless)

    with pytest.raises(ConfigError, match=r"AI provider 'keyless' cannot be created: .*API_KEY"):
        _ = SessionFixture(tmp_path, providers={"planner": "keyless"}).workflow


@pytest.mark.parametrize("name", ["jpa-mt", "python-module"])
def test_an_upgrade_of_a_shipped_profile_leaves_sessions_under_way_alone(
    tmp_path: Path, name: str
) -> None:
    """Their users cannot undo the change, and did not make it."""
    workflow = resolve(name, CompileContext(root=tmp_path))

    assert workflow.source["code"] == ""


def test_warnings_about_the_standards_are_shown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A rule that is left out must not go unnoticed."""

    class Doubtful(StandardsProvider):
        warnings = ("no rule has the prefix 'X'",)

        def validate(self) -> None:
            """Is configured."""

        def create_bundle(self, *_args: Any, **_options: Any) -> str:
            return "rules\n"

    class Ruled(ProbeProfile):
        def get_standards_config(self, context: Mapping[str, Any]) -> Mapping[str, Any]:
            return {"provider": "warning"}

    StandardsProviderFactory.register("warning", Doubtful)

    SessionFixture(tmp_path, Ruled).start()

    assert "no rule has the prefix 'X'" in caplog.text
