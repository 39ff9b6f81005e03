"""Documentation is true: what it shows is run, and what it links to is there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import signoff
from signoff import plugins
from signoff.app.config_schema import AgentSection, ConfigFile
from signoff.app.settings import ENVIRONMENT
from signoff.cli.entry import COMMANDS
from signoff.cli.exits import OF_STATUS
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
from signoff.flows.constraint_file import ConstraintFile
from signoff.flows.flow_file import FlowFile
from signoff.flows.genloop_file import RefinePhaseSection
from signoff.flows.judging_file import (
    ApprovalSection,
    EscalationSection,
    TerminationSection,
)
from signoff.flows.model import ConvergenceConfig, Tension
from signoff.flows.sections import ConstraintConfig, RoutingConfig, SourceSection
from signoff.flows.step import WorkflowStep
from signoff.store.schema import shipped_migrations
from tests.acceptance.doc_blocks import KNOWN, Section, anchors, links, sections
from tests.acceptance.doc_runner import Reader

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINKING = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *ROOT.glob("examples/*/*.md")]

SECTIONS = [section for page in PAGES for section in sections(page)]
TRIED = [section for section in SECTIONS if section.can_be_tried]


@pytest.mark.slow
@pytest.mark.parametrize("section", TRIED, ids=str)
def test_what_a_page_shows_works_as_shown(section: Section, tmp_path: Path) -> None:
    """A reader copies a block, and it has to do for them what the page says it does."""
    reader = Reader(tmp_path)

    for block in section.blocks:
        problem = reader.tries(block)

        assert not problem, f"{section.page.name}:{block.line}: {problem}"


@pytest.mark.parametrize("section", SECTIONS, ids=str)
def test_every_block_is_of_a_kind_that_is_tried_or_meant_to_be_read(section: Section) -> None:
    """A misspelt language would quietly take its block out of the tests."""
    unknown = [f"line {b.line}: {b.language}" for b in section.blocks if b.language not in KNOWN]

    assert unknown == []


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    """A dead link is where a reader gives up."""
    dead = [link for link in links(page) if "://" not in link and not _leads_somewhere(page, link)]

    assert dead == []


def test_the_command_reference_is_up_to_date() -> None:
    """An option that is not on the page does not exist for its readers."""
    written = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", "--check"], capture_output=True, text=True
    )

    assert written.returncode == 0, written.stderr


def test_make_docs_writes_the_command_reference() -> None:
    """It is what the complaint about an old page tells people to run."""
    planned = subprocess.run(["make", "-n", "docs"], cwd=ROOT, capture_output=True, text=True)

    assert "python docs/generate.py\n" in planned.stdout


def test_every_command_setting_variable_and_exit_code_has_its_place() -> None:
    """The page says it lists all of them."""
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


def test_every_key_of_a_flow_and_a_constraint_has_its_place() -> None:
    """A key that is read and stands on no page is one only we know of."""
    page = (ROOT / "docs" / "flows.md").read_text("utf-8")
    read = (
        *(FlowFile, WorkflowStep, ConstraintFile),
        *(SourceSection, ConstraintConfig, RoutingConfig, ConvergenceConfig, Tension),
        *(EscalationSection, ApprovalSection, TerminationSection, RefinePhaseSection),
    )
    keys = {key for section in read for key in section.model_fields}

    assert {key for key in keys if not re.search(rf"\b{key}\b", page)} == set()


def test_every_key_of_a_contract_has_its_place() -> None:
    """A key that is read and stands on no page is one only we know of."""
    page = (ROOT / "docs" / "contracts.md").read_text("utf-8")
    read = (ContractFile, StepSection, ConditionSection, NextSection, GateSection)
    keys = {
        field.alias or name
        for section in (*read, GateOptionSection, DatabaseSection)
        for name, field in section.model_fields.items()
    }

    assert {key for key in keys if not re.search(rf"\b{key}\b", page)} == set()


def test_every_public_name_is_explained() -> None:
    """A name that can be imported and is explained nowhere cannot be used."""
    pages = "\n".join(page.read_text("utf-8") for page in PAGES)

    unexplained = [name for name in signoff.__all__ if f"`{name}" not in pages]

    assert [name for name in unexplained if name != "__version__"] == []


def test_the_architecture_page_names_parts_that_are_there() -> None:
    """Whoever looks for a part by this page must find it."""
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    named = re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", page)

    gone = [name for name in named if not (ROOT / "src" / "signoff" / name).exists()]

    assert len(named) > 10
    assert gone == []


def test_the_architecture_page_lists_the_tables_there_are() -> None:
    """A table that is missing from the page is one nobody knows the use of."""
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    sql = "\n".join(migration.sql for migration in shipped_migrations())
    tables = {*re.findall(r"CREATE TABLE (\w+)", sql), "schema_migrations"}
    part = page.partition("## The store's tables")[2].partition("\n## ")[0]

    assert set(re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE)) == tables


def _leads_somewhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return False
    return not anchor or anchor in anchors(target)
