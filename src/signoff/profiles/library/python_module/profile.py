"""A Python module with its tests, from a description."""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from signoff.profiles.code_files import fenced
from signoff.profiles.profile import TemplateProfile

HERE = Path(__file__).parent

CONTEXT_SCHEMA: Mapping[str, Mapping[str, Any]] = {
    "module": {
        "type": "string",
        "required": True,
        "description": "name of the module, such as slugs",
    },
    "description": {
        "type": "string",
        "required": True,
        "description": "what the module does, for whom, and what matters about it",
    },
    "python_version": {
        "type": "string",
        "default": "3.11",
        "description": "oldest Python version that the code has to work with",
    },
    "dependencies": {
        "type": "string",
        "default": "",
        "description": "packages that the module may import, apart from the standard library",
    },
    "scope": {
        "type": "string",
        "choices": ["library", "script"],
        "default": "library",
        "description": "whether the module is imported or also run as a program",
    },
}

STANDARDS: Mapping[str, Any] = {
    "provider": "scoped-layer-fs",
    "root": str(HERE / "standards"),
    "scopes": {
        "library": {"layers": ["module", "tests"]},
        "script": {"layers": ["module", "program", "tests"]},
    },
    "layer_standards": {
        "_universal": ["python.md"],
        "module": ["module.md"],
        "program": ["program.md"],
        "tests": ["tests.md"],
    },
}

_TESTS = "test_"
_MODULE = re.compile(r"[a-z_][a-z0-9_]*")
_VERSION = re.compile(r"3\.[0-9]{1,2}")


class PythonModuleProfile(TemplateProfile):
    """One module and one file of tests that run with pytest."""

    templates = HERE / "templates"
    standards = STANDARDS

    @classmethod
    def get_metadata(cls) -> Mapping[str, Any]:
        """Returns name, description and context schema."""
        return {
            "name": "python-module",
            "description": "A Python module with its tests from a description.",
            "context_schema": CONTEXT_SCHEMA,
        }

    def context_problems(self, context: Mapping[str, Any]) -> Mapping[str, str]:
        """Refuses a module that cannot be imported, and a version that is not one of Python 3."""
        module, version = context["module"], context["python_version"]
        problems = {}
        if not _MODULE.fullmatch(module) or keyword.iskeyword(module):
            problems["module"] = f"{module!r:.80} is not the name of a module, such as slugs"
        elif module in sys.stdlib_module_names:
            problems["module"] = f"{module!r} would hide a module of the standard library"
        if not _VERSION.fullmatch(version):
            problems["python_version"] = f"{version!r:.80} is not a version such as 3.11"
        return problems

    def generation_problem(self, files: Mapping[str, str]) -> str:
        """Returns which of the two files is missing: a module needs tests, and tests a module."""
        paths = [PurePosixPath(path) for path in files if path.endswith(".py")]
        wanted = {path: _other_file(path) for path in paths}
        if not paths:
            return "the response has no module; it needs two files, as in slugs.py, test_slugs.py"
        if any(other in paths for other in wanted.values()):
            return ""
        # Tests say for certain which module is missing; any other file may be there for them.
        path = max(paths, key=_is_tests)
        other = wanted[path]
        return f"the response has {str(path)!r}, but not {str(other)!r} next to it"

    def template_variables(self, context: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns what the templates need to know about the module."""
        return {
            "MODULE": context["module"],
            "DESCRIPTION": fenced(context["description"], "text").rstrip("\n"),
            "PYTHON_VERSION": context["python_version"],
            "DEPENDENCIES": " ".join(context["dependencies"].split()),
            "SCRIPT": context["scope"] == "script",
        }


def _other_file(path: PurePosixPath) -> PurePosixPath:
    """Returns the tests of a module, or the module of tests."""
    name = path.name
    return path.with_name(name.removeprefix(_TESTS) if _is_tests(path) else f"{_TESTS}{name}")


def _is_tests(path: PurePosixPath) -> bool:
    return path.name.startswith(_TESTS)
