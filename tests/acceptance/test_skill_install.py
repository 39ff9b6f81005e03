"""Skills in the folder of a coding agent: installed, updated and kept."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from signoff.skills import discover_workflows
from tests.acceptance.cli_project import CliProject

SKILL = """
from signoff.skills import Outcome, StepDef, Workflow

print("imported code may print")
WORKFLOW = Workflow(
    "NAME",
    StepDef("read", "Read", ["Read it."], next={Outcome.OK: "judge"}),
    StepDef("judge", "Judge", ["Judge it."], next={Outcome.OK: None}),
    description="Checks the claims of a text. Use it before a text is published.",
)
"""
LIBRARY = sorted(discover_workflows())


@pytest.fixture
def critic(project: CliProject) -> CliProject:
    """A project with one skill."""
    project.write(".signoff/skills/critic.py", SKILL.replace("NAME", "critic"))
    return project


def actions(project: CliProject, *arguments: str) -> dict[str, str]:
    return {each["name"]: each["action"] for each in project.json("skill", *arguments)}


def installed(folder: Path) -> list[str]:
    return sorted(each.parent.name for each in folder.glob("*/SKILL.md"))


def test_all_skills_are_installed_in_the_project(critic: CliProject) -> None:
    """Agents that work in the project find them, wherever the command was run."""
    below = critic.folder / "src"
    below.mkdir()
    done = CliProject(below, critic._server).signoff("skill", "install")

    assert done.returncode == 0, done.stderr
    for folder in (".claude/skills", ".agents/skills"):
        assert installed(critic.folder / folder) == sorted([*LIBRARY, "critic"])
    assert len(LIBRARY) == 12
    assert re.search(r"^critic +installed +\S*critic/SKILL.md$", done.stdout, re.MULTILINE)
    assert actions(critic, "install") == dict.fromkeys([*LIBRARY, "critic"], "unchanged")


def test_an_agent_is_served_from_the_folder_that_it_reads(critic: CliProject) -> None:
    """Claude Code does not look where Codex and Gemini do, and some users have only one of them."""
    rows = [("claude", ".claude"), ("codex", ".agents"), ("gemini", ".agents")]
    for agent, place in rows:
        for options, root in (([], critic.folder), (["--user"], critic.folder / "home")):
            words = ["planner", "--agent", agent, *options]
            assert actions(critic, "install", *words) == {"planner": "installed"}
            assert installed(root / place / "skills") == ["planner"]
            assert len([*root.glob(".[ac]*/skills")]) == 1
            shutil.rmtree(root / place / "skills")


def test_the_first_command_of_an_installed_skill_works(critic: CliProject) -> None:
    """It is all that the agent knows."""
    critic.signoff("skill", "install")

    for file in (critic.folder / ".claude" / "skills").glob("*/SKILL.md"):
        commands = re.findall(r"^    (signoff .*)$", file.read_text(), re.MULTILINE)
        assert commands == [f"signoff skill step {file.parent.name} --step 1"]
        assert critic.signoff(*shlex.split(commands[0])[1:]).returncode == 0


def test_a_skill_of_the_project_works_elsewhere_when_it_is_installed_for_the_user(
    critic: CliProject,
) -> None:
    """A file of the project names no folder: it is under version control."""
    elsewhere = CliProject(critic.folder / "home", critic._server)
    critic.signoff("skill", "install", "critic", "deepthink", "--user")
    critic.signoff("skill", "install", "critic")

    for file in (elsewhere.folder / ".agents/skills").glob("*/SKILL.md"):
        for words in re.findall(r"signoff (skill (?:step|show) [^`\n]+)", file.read_text()):
            done = elsewhere.signoff(*shlex.split(words))
            assert done.returncode == 0, done.stderr
    own = (critic.folder / ".agents/skills/critic/SKILL.md").read_text()
    assert str(critic.folder) not in own


def test_what_the_file_says_about_resuming_is_true(critic: CliProject) -> None:
    """A skill that keeps files makes a new folder each time; others keep nothing at all."""
    critic.signoff("skill", "install", "planner", "critic", "--agent", "codex")
    texts = {
        name: " ".join((critic.folder / f".agents/skills/{name}/SKILL.md").read_text().split())
        for name in ("planner", "critic")
    }
    first = [critic.json("skill", "step", "planner", "--step", "1")["next_command"] for _ in "12"]
    again = {critic.signoff(*shlex.split(first[0])[1:]).stdout for _ in "12"}

    assert first[0] != first[1]
    assert "Run the first command only once" in texts["planner"]
    assert len(again) == 1
    assert "run the last one again: it prints the same step" in texts["planner"]
    assert "Nothing is stored between commands" in texts["critic"]


def test_installing_again_updates_what_is_unchanged_and_keeps_what_was_edited(
    critic: CliProject,
) -> None:
    """Users adapt the text to their agent, and a new version must not undo that."""
    critic.signoff("skill", "install", "critic", "planner")
    file = critic.folder / ".claude/skills/planner/SKILL.md"
    file.write_text(file.read_text().replace("## Start", "## How to start"))
    edited = file.read_text()
    module = critic.folder / ".signoff/skills/critic.py"
    module.write_text(module.read_text().replace("Checks", "Examines"))

    again = critic.signoff("skill", "install", "critic", "planner")

    assert again.returncode == 0
    assert re.search("^critic +updated", again.stdout, re.MULTILINE)
    assert re.search("^planner +kept", again.stdout, re.MULTILINE)
    assert "warning: .claude/skills/planner/SKILL.md is kept: it was edited since" in again.stderr
    assert "Examines" in (critic.folder / ".claude/skills/critic/SKILL.md").read_text()
    assert file.read_text() == edited


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("install planer", "unknown skill 'planer'"),
        ("install ../x", "unknown skill '../x'"),
        ("install planner nothing", "unknown skill 'nothing'"),
        ("install --to a --user", "--to and --user exclude each other"),
        ("install --to a --agent codex", "--to and --agent exclude each other"),
        ("install --agent vim", "'claude', 'codex', 'gemini'"),
        ("install --to", "requires an argument"),
    ],
)
def test_a_wrong_command_changes_nothing(project: CliProject, arguments: str, words: str) -> None:
    """Not even the folder is created."""
    before = sorted(project.folder.rglob("*"))

    done = project.signoff("skill", *arguments.split())

    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert words in done.stderr
    assert sorted(project.folder.rglob("*")) == before


def test_a_skill_that_cannot_be_installed_hides_no_other(critic: CliProject) -> None:
    """Its author may be someone else."""
    critic.write(".signoff/skills/broken.py", "import not_installed\nWORKFLOW = 1\n")
    critic.write(".signoff/skills/bad.py", SKILL.replace("NAME", "../../hacked"))

    done = critic.signoff("skill", "install")

    assert done.returncode == 1
    assert "skill '../../hacked': cannot be installed" in done.stderr
    assert "No module named 'not_installed'" in done.stderr
    assert installed(critic.folder / ".claude/skills") == sorted([*LIBRARY, "critic"])
    assert "Traceback" not in done.stderr
    assert list(critic.folder.rglob("*hacked*")) == []
