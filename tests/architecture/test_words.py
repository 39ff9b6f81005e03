"""Texts that people read use the product's words, and none of those that these replaced."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from signoff.core.words import PASSED, TO_FIX, Label
from tests.architecture.tree import PACKAGE, Module, planted, product

TABLE = "signoff/core/words.py"

TEMPLATES = {".css", ".html", ".j2", ".js", ".json", ".md", ".yaml"}
"""Files of the package that become texts: prompts, pages, presets, descriptions in schemas."""

REPLY = "asks a judge for a reply in the specified format"
HUMAN = "is about what a human approves"
PAIR = "writer and reviewer are the words of the specification of pairs"
PROFILE = "approver and reviewer are the words of the specification of profiles"
SKILL = "the quality reviewer is a role in the specification of skills"
FILES = "names a folder or a key of specified files"
COLUMN = "names a column of a table that only the engine reads"

REPLACED: Mapping[str, str] = {
    "persisting": Label.STILL_OPEN.words,
    "unreported": "still open, not reported again",
    "regressed": Label.BACK.words,
    "introduced": Label.CAUSED_BY_FIX.words,
    "pursue": "fix",
    "pursues": "asks to fix",
    "pursued": f"{TO_FIX}, or open",
    "pursuing": TO_FIX,
    "fate": "status",
    "adjudicator": "judge",
    "adjudicators": "judges",
    "reviewer": "critic",
    "reviewers": "critics",
    "approve": "pass, unless a human does it",
    "approves": "passes, unless a human does it",
    "approved": f"{PASSED}, unless a human did it",
    "approving": "passing, unless a human does it",
    "approval": "pass or verdict, unless a human gives it",
    "approvals": "verdicts, unless humans give them",
    "iteration": "round",
    "iterations": "rounds",
    "visit": "round, or how many times a step was entered",
    "visits": "rounds, or how many times a step was entered",
    "cycle": "round",
    "cycles": "rounds",
}
"""Words that do not occur in texts that people read, and what to write instead."""

ALLOWED: dict[str, dict[str, str]] = {
    "pursu": {
        "signoff/review/pure/templates/judge": REPLY,
        "signoff/review/pure/work_order.py": "recognizes what a judge wrote",
    },
    "reviewer": {
        "signoff/pair/": PAIR,
        "signoff/profiles/library/": PROFILE,
        "signoff/review/pure/reviewer_verdict.py": PAIR,
        "signoff/skills/": SKILL,
        "signoff/surfaces/notations/pair.py": PAIR,
        "signoff/surfaces/notations/skills/": SKILL,
        "signoff/views/metrics.py": PAIR,
    },
    "approv": {
        "signoff/app/": HUMAN,
        "signoff/surfaces/cli/": HUMAN,
        "signoff/contracts/runtime.py": HUMAN,
        "signoff/core/": HUMAN,
        "signoff/review/flow/end_view.py": HUMAN,
        "signoff/review/flow/presets/": HUMAN,
        "signoff/review/flow/schemas/": HUMAN,
        "signoff/review/flow/steps/sign_off.py": HUMAN,
        "signoff/review/flow/validation.py": HUMAN,
        "signoff/surfaces/mcp/": HUMAN,
        "signoff/views/run_log.py": "names a field of the specification of pairs",
        "signoff/pair/presets.md": "is a prompt: the reply of a reviewer is called an approval",
        "signoff/profiles/": PROFILE,
        "signoff/review/pure/reviewer_verdict.py": "recognizes what a reviewer wrote",
        "signoff/review/pure/history.py": HUMAN,
        "signoff/review/pure/templates/judge.md": REPLY,
        "signoff/skills/library/planner.md": HUMAN,
        "signoff/surfaces/notations/policy.py": "names a key of a policy file",
        "signoff/surfaces/notations/profiles.py": PROFILE,
        "signoff/surfaces/web/": HUMAN,
        "signoff/views/metrics.py": PAIR,
        "signoff/views/narration.py": HUMAN,
        "signoff/views/run_directory/": HUMAN,
    },
    "iteration": {
        "signoff/contracts/checkpoint.py": "names a value that conditions of contracts read",
        "signoff/core/step.py": "is the parameter of a step that repeats",
        "signoff/review/flow/end_view.py": FILES,
        "signoff/review/flow/layout.py": FILES,
        "signoff/review/flow/model.py": FILES,
        "signoff/review/flow/steps/handler.py": FILES,
        "signoff/profiles/": FILES,
        "signoff/surfaces/notations/skills/quality_review.": FILES,
        "signoff/skills/qr.py": FILES,
        "signoff/views/run_directory/": FILES,
        "signoff/store/run_layout.py": FILES,
        "signoff/store/base.py": COLUMN,
        "signoff/store/commits.py": COLUMN,
    },
    "visit": {"signoff/contracts/guarded_db/staging.py": COLUMN},
    "cycle": {
        "signoff/app/settings/agents.py": "is about agents that refer to each other",
        "signoff/skills/library/refactor.md": "is about modules that depend on each other",
    },
}
"""Where a replaced word may stand, by the start of the word and of the path, and why."""

SURFACES = ("signoff/surfaces/cli/", "signoff/views/")
"""Where a single word is a text that is shown; elsewhere it may be a key of a file format."""
KEYS = ("approv", "reviewer", "pursu")
"""The starts of words that are keys of specified file formats, too."""

SHOWN_DOCSTRINGS = {"command", "group", "get", "post", "put", "patch", "delete"}
"""Decorators that turn the docstring of a function into a help text or an API description."""


def test_no_text_uses_a_replaced_word() -> None:
    """Two words for one thing make a reader look for two things."""
    found = [each for each in replaced_words(texts()) if not _is_allowed(*each)]

    assert [f"{place}: {word!r}: use {REPLACED[word]!r}" for place, word in found] == []


def test_every_exception_is_needed() -> None:
    """An exception that nothing needs would hide the next wrong word."""
    used = {
        (allowed, start)
        for place, word in replaced_words(texts())
        for allowed, starts in ALLOWED.items()
        for start in starts
        if word.startswith(allowed) and place.startswith(start)
    }

    assert {(word, start) for word, starts in ALLOWED.items() for start in starts} == used


def test_replaced_words_are_found_in_messages_help_and_templates() -> None:
    """A check that finds nothing would let every word pass."""
    modules = planted(
        a__message='out.line(f"{number} Persisting findings")',
        a__help='@click.command()\ndef command():\n    """List what regressed."""',
        a__fine='"""Persisting."""\npursued = state.to_fix\nkey = "pursued_by_round"',
        a__key='approved = turn["approved"]\nverdict = "APPROVED or REWRITE"',
        a__data='run = {"iteration": 2, "max_iterations": 3}',
        views__shown='yield "approved"',
    )
    pages = [("signoff/a/page.html:2", "<p>introduced</p>")]

    assert list(replaced_words([*_literals(modules), *pages])) == [
        ("signoff/a/message.py:1", "persisting"),
        ("signoff/a/help.py:3", "regressed"),
        ("signoff/a/data.py:1", "iteration"),
        ("signoff/views/shown.py:1", "approved"),
        ("signoff/a/page.html:2", "introduced"),
    ]


def replaced_words(found: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yields each replaced word in some texts, with its place."""
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(REPLACED)})(?!\w)", re.IGNORECASE)
    for place, text in found:
        is_shown = " " in text.strip() or place.startswith(SURFACES)
        for word in pattern.findall(text):
            # A word in capitals, such as APPROVED, is one of a reply format.
            is_key = word.lower().startswith(KEYS) and (word.isupper() or not is_shown)
            if not is_key:
                yield place, word.lower()


def texts() -> Iterator[tuple[str, str]]:
    """Yields the texts of the package that people may read, with their places."""
    yield from _literals(product())
    yield from _lines(PACKAGE)


def _literals(modules: Iterable[Module]) -> Iterator[tuple[str, str]]:
    """Yields the strings of modules without docstrings that nobody is shown."""
    for module in modules:
        docstrings = {id(node.value) for node in module.nodes if isinstance(node, ast.Expr)}
        shown = {id(each.body[0].value) for each in module.nodes if _shows_docstring(each)}  # type: ignore[attr-defined]  # a function with a docstring
        for node in module.nodes:
            if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
                continue
            if id(node) not in docstrings - shown:
                yield f"{module.path}:{node.lineno}", node.value


def _shows_docstring(node: ast.AST) -> bool:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not ast.get_docstring(node):
        return False
    names = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
    return any(isinstance(each, ast.Attribute) and each.attr in SHOWN_DOCSTRINGS for each in names)


def _lines(package: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(package.rglob("*")):
        if path.suffix in TEMPLATES:
            name = path.relative_to(package.parent).as_posix()
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if path.suffix != ".json" or '"description":' in line:
                    # The tags of a template name values; nobody is shown them.
                    yield f"{name}:{number}", re.sub(r"\{\{.*?\}\}", "{}", line)


def _is_allowed(place: str, word: str) -> bool:
    return any(
        word.startswith(stem) and place.startswith(start)
        for stem, starts in ALLOWED.items()
        for start in starts
    )
