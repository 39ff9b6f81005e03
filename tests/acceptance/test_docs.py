"""Runs every code block of the documentation and checks its links and lists."""

import re
import subprocess
import sys
from contextlib import closing, nullcontext
from pathlib import Path

import pytest

import signoff
from signoff import plugins
from signoff.app.settings.config_schema import AgentSection, ConfigFile
from signoff.app.settings.settings import ENVIRONMENT
from signoff.contracts.contract_file import (
    ConditionSection,
    ContractFile,
    DatabaseSection,
    GateOptionSection,
    GateSection,
    NextSection,
    StepSection,
)
from signoff.documents.sections import LimitsSection
from signoff.review.flow.model import ConvergenceConfig, Tension, WorkflowStep
from signoff.review.flow.reading import (
    ApprovalSection,
    EscalationSection,
    FlowFile,
    RefinePhaseSection,
    TerminationSection,
)
from signoff.review.flow.sections import (
    ConstraintConfig,
    ConstraintFile,
    RoutingConfig,
    SourceSection,
)
from signoff.store.connection import shipped_migrations
from signoff.surfaces.cli.entry import COMMANDS
from signoff.surfaces.cli.exits import OF_STATUS
from tests.acceptance.cli_project import worker_for_server
from tests.acceptance.doc_blocks import KNOWN, Section, anchors, links, sections
from tests.acceptance.doc_runner import DocRunner
from tests.acceptance.forked_program import ForkedProgram

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINKING = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *ROOT.glob("examples/*/*.md")]

SECTIONS = [section for page in PAGES for section in sections(page)]
FIRST_PAGES = {"README.md", "guide.md", "flows.md", "review.md", "contracts.md"}
"""Newcomers start with these; `make test-slow` tries the blocks of the others."""


TRIED = [
    pytest.param(
        section, marks=[] if section.page.name in FIRST_PAGES else pytest.mark.slow, id=str(section)
    )
    for section in SECTIONS
    if section.is_runnable
]


@pytest.mark.parametrize("section", TRIED)
def test_the_code_blocks_of_a_section_work_as_documented(
    section: Section, tmp_path: Path, forked_program: ForkedProgram
) -> None:
    """Users copy these blocks."""
    # A command that a block kills must be the process that the shell started.
    kills = any("kill" in block.text for block in section.blocks)
    installed = kills or section.page.name == "README.md"
    runner = DocRunner(tmp_path, None if installed else forked_program.folder)
    if any("agent: local" in block.text for block in section.blocks):
        runner.install_model()

    hands_over = any("--detach" in block.text for block in section.blocks)
    worker = worker_for_server(runner.folder, runner.environment) if hands_over else nullcontext()
    with worker, closing(runner):
        for block in section.blocks:
            problem = runner.run(block)

            assert not problem, f"{section.page.name}:{block.line}: {problem}"


def test_every_block_has_a_known_language() -> None:
    """A block with a misspelled language would not be tested."""
    blocks = [(section.page.name, block) for section in SECTIONS for block in section.blocks]
    unknown = [f"{page}:{b.line}: {b.language}" for page, b in blocks if b.language not in KNOWN]

    assert blocks
    assert unknown == []


def test_links_between_pages_are_not_dead() -> None:
    """Readers give up at dead links."""
    local = [(page, link) for page in LINKING for link in links(page) if "://" not in link]
    dead = [
        f"{page.relative_to(ROOT)}: {link}"
        for page, link in local
        if not _target_exists(page, link)
    ]

    assert local
    assert dead == []


def test_the_command_reference_is_up_to_date() -> None:
    """Users do not find an option that is missing on the page."""
    written = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", "--check"], capture_output=True, text=True
    )

    assert written.returncode == 0, written.stderr


def test_every_command_setting_variable_and_exit_code_is_documented() -> None:
    """The page claims to be complete."""
    page = (ROOT / "docs" / "commands.md").read_text("utf-8")
    settings = [
        *ConfigFile.model_fields,
        *(f"limits.{name}" for name in LimitsSection.model_fields),
        *(f"agents.NAME.{name}" for name in AgentSection.model_fields),
    ]
    commands = [*COMMANDS, *(name for each in plugins.notations() for name in each.commands)]
    wanted = [
        *(f"### signoff {name}\n" for name in commands),
        *(f"| `{name}` |" for name in (*settings, *ENVIRONMENT, "SIGNOFF_HOME", "SIGNOFF_CONFIG")),
        *(f"| {code} | `{status.value}` |" for status, code in OF_STATUS.items()),
    ]

    assert [text for text in wanted if text not in page] == []


def test_every_key_of_a_flow_and_a_constraint_is_documented() -> None:
    """Users do not find a key that is not on the page."""
    page = (ROOT / "docs" / "flows.md").read_text("utf-8")
    read = (
        *(FlowFile, WorkflowStep, ConstraintFile),
        *(SourceSection, ConstraintConfig, RoutingConfig, ConvergenceConfig, Tension),
        *(EscalationSection, ApprovalSection, TerminationSection, RefinePhaseSection),
    )
    keys = {key for section in read for key in section.model_fields}

    assert {key for key in keys if not re.search(rf"\b{key}\b", page)} == set()


def test_every_key_of_a_contract_is_documented() -> None:
    """Users do not find a key that is not on the page."""
    page = (ROOT / "docs" / "contracts.md").read_text("utf-8")
    read = (ContractFile, StepSection, ConditionSection, NextSection, GateSection)
    keys = {
        field.alias or name
        for section in (*read, GateOptionSection, DatabaseSection)
        for name, field in section.model_fields.items()
    }

    assert {key for key in keys if not re.search(rf"\b{key}\b", page)} == set()


def test_every_public_name_is_documented() -> None:
    """Users cannot use a name that is not documented."""
    pages = "\n".join(page.read_text("utf-8") for page in PAGES)

    unexplained = [name for name in signoff.__all__ if f"`{name}" not in pages]

    assert [name for name in unexplained if name != "__version__"] == []


def test_the_architecture_page_names_existing_files() -> None:
    """Readers look for these files."""
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    named = re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", page)

    gone = [name for name in named if not (ROOT / "src" / "signoff" / name).exists()]

    assert len(named) > 10
    assert gone == []


def test_every_table_is_documented() -> None:
    """Administrators see what each table is for."""
    page = (ROOT / "docs" / "postgres.md").read_text("utf-8")
    sql = "\n".join(migration.sql for migration in shipped_migrations())
    tables = {*re.findall(r"CREATE TABLE (\w+)", sql), "schema_migrations"}
    part = page.partition("## The tables")[2].partition("\n## ")[0]

    assert set(re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE)) == tables


def _target_exists(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return False
    return not anchor or anchor in anchors(target)
