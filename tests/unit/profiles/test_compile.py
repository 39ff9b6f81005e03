from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from signoff.agents.base import KnownAgent
from signoff.core.args import bind
from signoff.core.errors import (
    ConfigError,
    InvalidParams,
    InvalidWorkflow,
    ProviderError,
    SignoffError,
    UnknownName,
)
from signoff.core.outcome import Status
from signoff.core.step import Edge
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
from signoff.profiles.compile import StandardsSource, context_params, read_context_files, resolve
from signoff.profiles.library.python_module.profile import CONTEXT_SCHEMA
from signoff.profiles.session import STANDARDS_PARAM, ProfileError, step_id
from signoff.profiles.settings import ProfilesSection
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
        ({}, {"providers": {"reviser": "nobody"}}, ["providers.reviser", "'nobody'"]),
        (
            {},
            {"approval": {"stages": {"plan.prompt": "nobody"}}},
            ["approval.stages.plan.prompt", "'nobody'", "skip"],
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


SCHEMA = {
    "entity": {"type": "string", "required": True, "description": "the name of the class"},
    "ddl": {"type": "path", "required": True, "exists": True},
    "out": {"type": "path"},
    "scope": {"type": "string", "choices": ["domain", "full"], "default": "full"},
    "version": {"type": "int", "default": "17"},
    "audit": {"type": "bool", "default": False},
    "note": {},
}

KEYS = "valid: type, required, choices, exists, default, description"


def context(folder: Path, **values: Any) -> tuple[dict[str, Any], list[str]]:
    (folder / "table.sql").touch()
    params, problems = context_params(SCHEMA, folder)
    assert problems == []
    values, found = bind(params, values)
    return values, [str(problem) for problem in found]


def test_values_are_converted_and_defaults_filled_in(tmp_path: Path) -> None:
    """A profile sees every field, each with its own type."""
    values, problems = context(
        tmp_path, entity="User", ddl="table.sql", version="21", audit="yes", scope="domain"
    )

    assert problems == []
    assert values == {
        "entity": "User",
        "ddl": "table.sql",
        "out": None,
        "scope": "domain",
        "version": 21,
        "audit": True,
        "note": None,
    }


def test_defaults_are_converted_too(tmp_path: Path) -> None:
    """A default in quotes is still a number."""
    values, _ = context(tmp_path, entity="User", ddl="table.sql")

    assert (values["scope"], values["version"], values["audit"]) == ("full", 17, False)


def test_all_problems_are_reported_together_with_their_fields(tmp_path: Path) -> None:
    """Users fix a command in one go."""
    _, problems = context(
        tmp_path, ddl="gone.sql", scope="all", version="new", audit="perhaps", typo="x"
    )

    assert problems == [
        "parameter 'typo': is unknown (valid: entity, ddl, out, scope, version, audit, note)",
        "parameter 'entity': is missing (the name of the class)",
        "parameter 'ddl': 'gone.sql' does not exist (give it as ddl=VALUE)",
        "parameter 'scope': 'all' is not one of the choices (choose one of: domain, full)",
        "parameter 'version': 'new' is not a whole number (give it as version=VALUE)",
        "parameter 'audit': 'perhaps' is not true or false (give it as audit=VALUE)",
    ]


@pytest.mark.parametrize("ddl", ["table.sql", "./table.sql", "sub/../table.sql", ".", "ABSOLUTE"])
def test_a_path_that_exists_is_accepted_as_it_is_written(tmp_path: Path, ddl: str) -> None:
    """It starts in the project, wherever the command is run."""
    (tmp_path / "sub").mkdir()
    value = str(tmp_path / "table.sql") if ddl == "ABSOLUTE" else ddl

    values, problems = context(tmp_path, entity="User", ddl=value)

    assert problems == []
    assert values["ddl"] == value


@pytest.mark.parametrize("ddl", ["", "  ", "gone.sql", "table.sql/x", "a\0b", "x" * 5000])
def test_a_path_that_does_not_exist_is_refused(tmp_path: Path, ddl: str) -> None:
    """The session would fail later, with a run to clean up."""
    _, problems = context(tmp_path, entity="User", ddl=ddl)

    assert len(problems) == 1
    assert problems[0].startswith("parameter 'ddl': ")


def test_a_required_text_cannot_be_empty(tmp_path: Path) -> None:
    """`entity=` is a forgotten value."""
    _, problems = context(tmp_path, entity=" ", ddl="table.sql", note="")

    assert problems == ["parameter 'entity': is empty (the name of the class)"]


def test_choices_have_the_type_of_their_field(tmp_path: Path) -> None:
    """A number from the command line is compared as a number."""
    params, problems = context_params({"v": {"type": "int", "choices": [17, "21"]}}, tmp_path)

    assert problems == []
    assert bind(params, {"v": "21"}) == ({"v": 21}, [])
    assert [str(each) for each in bind(params, {"v": "8"})[1]] == [
        "parameter 'v': 8 is not one of the choices (choose one of: 17, 21)"
    ]


def test_a_required_field_ignores_its_default(tmp_path: Path) -> None:
    """The author wants an explicit value."""
    params, _ = context_params({"a": {"required": True, "default": "x"}}, tmp_path)

    assert params["a"].required


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        ({"type": "str"}, "unknown type 'str' (valid: string, int, bool, path)"),
        ({"type": ["int"]}, "unknown type ['int'] (valid: string, int, bool, path)"),
        ({"choice": []}, f"unknown key 'choice' ({KEYS})"),
        ("string", f"is not a mapping ({KEYS})"),
        ({"required": "yes"}, "required is 'yes' (write true or false)"),
        ({"type": "path", "exists": 1}, "exists is 1 (write true or false)"),
        ({"choices": "ab"}, "choices is 'ab' (write a list)"),
        ({"exists": True}, "exists is only for paths (remove it, or write type: path)"),
        ({"type": "int", "default": "many"}, "default: 'many' is not a whole number"),
        ({"choices": ["a"], "default": "b"}, "default: 'b' is not one of the choices"),
        ({"type": "int", "choices": ["a"]}, "choices: 'a' is not a whole number"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_schema_is_reported(tmp_path: Path, field: Any, problem: str) -> None:
    """The author of the profile has to fix it, not its user."""
    _, problems = context_params({"good": {}, "bad": field}, tmp_path)

    assert [str(each) for each in problems] == [f"context field 'bad': {problem}"]


@pytest.mark.parametrize("name", ["", "a-b", "a b", "1a", "_a", "ä", 7])
def test_the_name_of_a_field_can_be_typed(tmp_path: Path, name: Any) -> None:
    """It is used in commands and in templates."""
    _, problems = context_params({name: {}}, tmp_path)

    assert [each.what for each in problems] == ["is not a valid name"]


def test_a_field_cannot_have_the_name_of_the_standards(tmp_path: Path) -> None:
    """The engine records them with the values of the context."""
    _, problems = context_params({"standards_bundle": {}}, tmp_path)

    assert [each.where for each in problems] == ["context field 'standards_bundle'"]


FILE_FIELDS: Mapping[str, Mapping[str, Any]] = {
    "ddl": {"type": "path", "exists": True},
    "notes": {"type": "path", "exists": True},
    "target": {"type": "path"},
    "name": {"type": "string"},
}


def test_the_text_of_an_existing_file_is_added_under_the_name_of_its_field(tmp_path: Path) -> None:
    """A profile does no I/O, so it gets the text with its context."""
    (tmp_path / "shop.sql").write_text("create table é", "utf-8")
    other = tmp_path / "other.md"
    other.write_text("notes", "utf-8")

    texts = read_context_files(FILE_FIELDS, {"ddl": "shop.sql", "notes": str(other)}, tmp_path)

    assert texts == {"ddl_text": "create table é", "notes_text": "notes"}


def test_other_fields_are_not_read(tmp_path: Path) -> None:
    """A path that need not exist, a folder or a field without a value has no text."""
    context = {"ddl": "", "notes": ".", "target": "missing.md", "name": "x.sql"}

    assert read_context_files(FILE_FIELDS, context, tmp_path) == {}


def test_every_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    """The user fixes all of them at once."""
    (tmp_path / "binary.sql").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(InvalidParams) as error:
        read_context_files(FILE_FIELDS, {"ddl": "binary.sql", "notes": "missing"}, tmp_path)

    assert [str(problem) for problem in error.value.problems] == [
        "ddl: binary.sql:1: cannot be read: it is not UTF-8 text",
        "notes: missing: does not exist",
    ]


class Layered(ProbeProfile):
    """Has standards of its own."""

    def get_standards_config(self, context: Any) -> dict[str, Any]:
        return {"provider": "yaml-rules", "root": str(context["subject"])}


def source(**section: Any) -> StandardsSource:
    settings = ProfilesSection.of({"profiles": section})
    return StandardsSource.of("probe", Layered(), settings, {"subject": "rules"})


def test_without_settings_a_profile_says_which_standards_it_has() -> None:
    """A shipped profile works as it is."""
    found = source(standards={"other": {"root": "x"}})

    assert found == StandardsSource("yaml-rules", {"provider": "yaml-rules", "root": "rules"})


def test_the_settings_replace_the_standards_of_a_profile() -> None:
    """A team uses a shipped profile with its own rules, and needs no subclass."""
    found = source(standards={"probe": {"root": "team"}})

    assert found == StandardsSource("scoped-layer-fs", {"root": "team"}, "profiles.standards.probe")


def test_the_provider_of_one_profile_beats_that_of_all() -> None:
    """The setting for one profile is the more specific one."""
    every = source(standards_provider="house", standards={"probe": {"root": "team"}})
    own = source(standards_provider="house", standards={"probe": {"provider": "yaml-rules"}})

    assert (every.provider, own.provider) == ("house", "yaml-rules")


def test_mistakes_in_the_settings_are_reported_with_the_setting(tmp_path: Path) -> None:
    """The user has to know that the mistake is not the profile's."""
    wrong = source(standards={"probe": {"provider": "yaml-rules", "rooot": "x"}})

    with pytest.raises(ProviderError, match=r"profiles\.standards\.probe: .*'rooot'.*root"):
        wrong.create(tmp_path)
    with pytest.raises(ProviderError, match=r"^configuration"):
        source().create(tmp_path)
    with pytest.raises(UnknownName, match="yaml-rules"):
        source(standards={"probe": {"provider": "nowhere"}}).create(tmp_path)
