"""What authors of profiles and providers rely on, and programs that read sessions."""

import json
from pathlib import Path

import signoff
from signoff.core.digest import text_digest
from signoff.core.outcome import Status
from signoff.profiles import WorkflowPhase, WorkflowState, WorkflowStatus
from tests.acceptance.profile_project import CODE, FAIL, PASS, PROFILE, ProfileProject

AUTOMATIC = "  providers: {default: writer}\n  approval: {default_approver: skip}\n"
REPLIES = [("plan.response", "a plan"), ("generate.response", CODE), ("review.response", PASS)]

FILE_PROVIDER = '''
from pathlib import Path
from signoff.profiles import AIProvider, AIProviderFactory, AIProviderResult, FsAbility


class FileProvider(AIProvider):
    """Reads its prompt from a file, and saves what it makes in files."""

    fs_ability = FsAbility.LOCAL_WRITE

    def validate(self):
        pass

    def generate(self, prompt, context):
        session, asked = Path(context["session_dir"]), Path(context["prompt_file"])
        assert asked.read_text() == prompt
        assert asked.is_relative_to(session)
        response = Path(context["response_file"])
        with (session / "asked.log").open("a") as log:
            log.write(f"{asked.relative_to(session)} {prompt.count('too short')}\\n")
        match context["phase"]:
            case "generate":
                code = session / f"iteration-{context['iteration']}" / "code"
                code.mkdir()
                (code / "note.md").write_text((session / "plan.md").read_text())
                return AIProviderResult(response="done", files={"note.md": None})
            case "review":
                response.write_text("@@@REVIEW_META\\nverdict: PASS\\nissues_total: 0\\n"
                                    "issues_critical: 0\\nmissing_inputs: 0\\n@@@\\n")
            case phase:
                response.write_text(f"the {phase} of a file")
        return AIProviderResult()
'''


def test_a_provider_works_with_the_files_of_a_session(profile_project: ProfileProject) -> None:
    """Programs that read and write files need nothing but what their provider is given."""
    registered = PROFILE.replace(
        "    return Note\n",
        '    AIProviderFactory.register("files", FileProvider)\n    return Note\n',
    )
    profile_project.write(".signoff/profiles/note.py", FILE_PROVIDER + registered)
    profile_project.settings(
        "  providers: {default: files}\n"
        "  approval: {default_approver: skip, stages: {plan.response: manual}}\n"
    )

    waiting = profile_project.init()
    rejected = profile_project.profile("reject", "-f", "too short")
    done = profile_project.profile("approve")

    assert (waiting.code, rejected.code, done.code) == (10, 10, 0), done.out + done.err
    code = profile_project.session_file("iteration-1/code/note.md").read_text()
    assert code == "the plan of a file"
    # A prompt that is sent again has the feedback, and a file of its own.
    assert profile_project.session_file("asked.log").read_text().splitlines() == [
        "iteration-1/planning-prompt.md 0",
        "iteration-1/planning-retry-prompt.md 1",
        "iteration-1/generation-prompt.md 0",
        "iteration-1/review-prompt.md 0",
    ]


def test_a_session_runs_from_python_with_one_call(profile_project: ProfileProject) -> None:
    """A program starts sessions, and their user continues them on the command line."""
    profile_project.settings(
        "  providers: {default: manual}\n  approval: {default_approver: skip}\n", writer=REPLIES
    )
    roles = dict.fromkeys(("planner", "generator", "reviewer", "reviser"), "writer")

    done = signoff.run("profile:note", {"topic": "the sea"}, name="one", options=roles)
    waiting = signoff.run("note", {"topic": "the sea"}, name="two", options={"planner": "writer"})
    profile_project.write(".signoff/runs/two/iteration-1/generation-response.md", CODE)
    signoff.answer("two", True)
    again = signoff.resume("two")

    assert done.status is Status.COMPLETED
    assert (waiting.status, waiting.step) == (Status.WAITING, "generate.response")
    assert (again.status, again.step) == (Status.WAITING, "review.response")
    assert profile_project.profile("status", "two").code == 0


def test_the_state_of_a_session_loads_as_the_state(profile_project: ProfileProject) -> None:
    """Other programs read `state.json` with the model, under the names it has."""
    profile_project.settings(AUTOMATIC, writer=REPLIES)
    profile_project.init()
    text = profile_project.session_file("state.json").read_text()

    state = WorkflowState.model_validate_json(text)

    assert (state.phase, state.status) == (WorkflowPhase.COMPLETE, WorkflowStatus.SUCCESS)
    assert list(json.loads(text))[:3] == ["session_id", "profile", "phase"]
    assert (state.run["run"], state.run["status"]) == ("one", "completed")
    assert profile_project.call("logs", "one").code == 0
    # The directory is still recognized as that of the run, and shown as it is.
    profile_project.session_file("state.json").unlink()
    profile_project.call("resume", "one")
    assert profile_project.session_file("state.json").read_text() == text


def test_approved_code_that_was_changed_is_not_delivered(profile_project: ProfileProject) -> None:
    """What a review passed must be what the session delivers."""
    code = _code_before_its_last_approval(profile_project)
    approved = code.read_text()
    code.write_text("changed\n")

    refused = profile_project.profile("approve")
    kept = code.read_text()
    code.unlink()
    done = profile_project.profile("approve")

    assert refused.code == 10
    assert "iteration-1/code/note.md" in refused.out + refused.err
    assert kept == "changed\n"
    assert done.code == 0, done.out + done.err
    state = profile_project.status()
    assert state["phase"] == "complete"
    assert code.read_text() == approved
    assert [each["sha256"] for each in state["artifacts"]] == [text_digest(approved)]


def test_approved_code_that_is_missing_is_written_again(profile_project: ProfileProject) -> None:
    """Another machine may finish the session; the approved text is recorded."""
    code = _code_before_its_last_approval(profile_project)
    code.unlink()

    done = profile_project.profile("approve")

    assert done.code == 0
    assert code.read_text() == "text\n"


def _code_before_its_last_approval(project: ProfileProject) -> Path:
    project.settings(
        "  providers: {default: writer}\n"
        "  approval: {default_approver: skip, stages: {review.response: manual}}\n",
        writer=REPLIES,
    )
    project.init()
    return project.session_file("iteration-1/code/note.md")


def test_prompts_can_be_exempt_from_approval(profile_project: ProfileProject) -> None:
    """Most users want to see answers, not every prompt."""
    exempt = profile_project.init("--skip-prompts")
    at_init = profile_project.position
    continued = profile_project.session_file("iteration-1/planning-response.md")
    continued.write_text("a plan")
    profile_project.profile("approve")
    later = profile_project.position
    profile_project.settings(
        "  approval: {default_prompt_approver: skip, stages: {generate.prompt: manual}}\n"
    )
    profile_project.profile("init", "note", "-c", "topic=x", "--name", "two")
    in_settings = profile_project.position
    profile_project.write(".signoff/runs/two/iteration-1/planning-response.md", "a plan")
    profile_project.profile("approve")

    assert exempt.code == 10
    assert at_init[:2] == ("plan", "response")
    assert later[:2] == ("generate", "response")
    assert in_settings[:2] == ("plan", "response")
    assert profile_project.position[:2] == ("generate", "prompt")


OPTIONS = """"options": {"style": {"type": "string", "choices": ["plain", "rich"],
                                  "default": "plain"}},
            "context_schema": {"""


def test_a_profile_has_options_of_its_own_and_knows_the_round(
    profile_project: ProfileProject,
) -> None:
    """A team sets once what is the same in all its sessions."""
    source = PROFILE.replace('"context_schema": {', OPTIONS).replace(
        'return "Fix it.', 'return f"{self.options[\'style\']}, round {context[\'iteration\']}. '
    ).replace("{{REVIEW}}", "{{{{REVIEW}}}}").replace(
        '\\n\\n{{{{REVIEW}}}}\\n\\n{{CODE}}"', '\\n\\n{{{{REVIEW}}}}\\n\\n{{{{CODE}}}}"'
    )  # fmt: skip
    profile_project.write(".signoff/profiles/note.py", source)
    replies = [*REPLIES[:2], ("review.response", FAIL)]
    options = "  options: {note: {style: STYLE}}\n"
    stages = "  approval: {default_approver: skip, stages: {revise.prompt: manual}}\n"
    settings = f"  providers: {{default: writer}}\n{stages}{options}"
    profile_project.settings(settings.replace("STYLE", "loud"), writer=replies)
    refused = profile_project.init()
    profile_project.settings(settings.replace("{style: STYLE}", "{size: 3}"), writer=replies)
    unknown = profile_project.init()
    profile_project.settings(settings.replace("STYLE", "rich"), writer=replies)

    started = profile_project.init()

    assert (refused.code, unknown.code) == (2, 2)
    assert "profiles.options.note" in refused.err
    assert "loud" in refused.err
    assert "style" in unknown.err
    assert started.code == 10, started.err
    prompt = profile_project.session_file("iteration-2/revision-prompt.md").read_text()
    assert prompt.startswith("rich, round 2.")
    assert profile_project.session_file("iteration-1/review-prompt.md").exists()
