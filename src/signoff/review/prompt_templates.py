"""The templates of the prompts, which a flow can replace by its own.

They are written in the language of `signoff.documents.templates`; here is which templates there
are, what each of them needs, and how a folder with a user's own is read or started.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from signoff.documents.files import display_path, read_text
from signoff.documents.mistakes import Mistake
from signoff.documents.mistakes import Path as KeyPath
from signoff.documents.templates import mistakes_in, render_text, variables_of
from signoff.errors import Problem, UsageError

LONGEST_TEMPLATE = 100_000
"""Bytes; a longer file is not a template that a user wrote."""

REQUIRED: Mapping[str, frozenset[str]] = {
    "author": frozenset({"goal"}),
    "author_system": frozenset(),
    "author_brief": frozenset({"goal"}),
    "critic": frozenset({"artifact", "constraints"}),
    "critic_system": frozenset(),
    "fixer": frozenset({"filename", "bill_of_work"}),
    "fixer_system": frozenset(),
    "judge": frozenset({"artifact", "critiques"}),
    "judge_system": frozenset(),
    "severities": frozenset(),
    "verifier": frozenset({"passage", "claim"}),
    "verifier_system": frozenset(),
}
"""Every template, with the variables it cannot do without."""

_FOLDER = Path(__file__).with_name("templates")
_SUFFIX = ".md"
_SYSTEM = "_system"
_VALID = f"valid: {', '.join(f'{name}{_SUFFIX}' for name in sorted(REQUIRED))}"


@cache
def built_in(name: str) -> str:
    """Returns the text of a template that comes with signoff."""
    return (_FOLDER / f"{name}{_SUFFIX}").read_text("utf-8")


def fill(template: str, values: Mapping[str, str]) -> str:
    """Returns a template with its values filled in; it ends with one line break."""
    # A block at the end of a template may be left out, and its empty line with it.
    return render_text(template, values).strip("\n") + "\n"


def variables_for(name: str) -> set[str]:
    """Returns the variables that a template may use: those of the built-in ones of its role."""
    role = name.removesuffix(_SYSTEM)
    parts = [part for part in (role, f"{role}{_SYSTEM}") if part in REQUIRED]
    return set().union(*(variables_of(built_in(part)) for part in parts))


def read_templates(
    name: str, folders: Sequence[Path], at: Callable[[KeyPath], str], problems: list[Problem]
) -> dict[str, str]:
    """Returns the templates in a folder by name; adds every mistake in them.

    A relative folder is looked for in `folders`, in this order.
    """
    paths = [folder / name for folder in folders]
    folder = next((path for path in paths if path.is_dir()), None)
    if folder is None:
        searched = " and ".join(dict.fromkeys(display_path(each) for each in folders))
        what = f"prompts is {name!r}, but there is no such folder"
        problems.append(Mistake(("prompts",), what, f"searched {searched}").problem(at))
        return {}
    templates: dict[str, str] = {}
    for file in sorted(folder.glob(f"*{_SUFFIX}")):
        if file.stem not in REQUIRED:
            problems.append(Problem(display_path(file), "is not the name of a template", _VALID))
        elif (text := read_text(file, problems, most=LONGEST_TEMPLATE)) is not None:
            # Templates have Unix line ends, whatever the editor: they are part of the prompt.
            templates[file.stem] = text.replace("\r\n", "\n")
            problems += _problems(file.stem, templates[file.stem], display_path(file))
    if not templates and not problems:
        what = f"the folder {name!r} has no templates"
        problems.append(Mistake(("prompts",), what, _VALID).problem(at))
    return templates


def write_templates(folder: Path) -> list[Path]:
    """Writes the built-in templates to a folder; raises `UsageError` if a file would be lost."""
    files = {folder / f"{name}{_SUFFIX}": built_in(name) for name in REQUIRED}
    if taken := [display_path(file) for file in files if file.exists()]:
        raise UsageError(f"already there: {', '.join(taken)}; choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        file.write_text(text, "utf-8")
    return list(files)


def _problems(name: str, text: str, where: str) -> Iterator[Problem]:
    if not text.strip():
        yield Problem(where, "is empty", "delete it to use the built-in template")
        return
    yield from mistakes_in(text, where, variables_for(name))
    # A variable that is only tested is not shown to the agent.
    for missing in sorted(REQUIRED[name] - variables_of(text, printed=True)):
        remedy = "without it the agent would not see what it is about"
        yield Problem(where, f"{{{{{missing}}}}} is missing", remedy)
