"""Multi-tenant JPA entities and repositories, from a table definition.

Tenants share the tables, and a column says which tenant a row belongs to. The code uses plain
Jakarta Persistence and Spring Data; tenants are separated by what the code says, not by a filter
that a library adds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from signoff.profiles.code_files import fenced
from signoff.profiles.profile import TemplateProfile

HERE = Path(__file__).parent

DOMAIN, REPOSITORY, FULL = "domain", "repository", "full"

STANDARDS: Mapping[str, Any] = {
    "provider": "yaml-rules",
    "root": str(HERE / "standards"),
    "scopes": {
        DOMAIN: {"prefixes": ["JAVA", "MTE", "ENT"]},
        REPOSITORY: {"prefixes": ["JAVA", "MTR", "REPO", "TEST"]},
        FULL: {},
    },
}
"""The rules that each scope is held to. Scopes do not include each other."""

CONTEXT_SCHEMA: Mapping[str, Mapping[str, Any]] = {
    "entity": {
        "type": "string",
        "required": True,
        "description": "name of the entity class, such as Product",
    },
    "table": {
        "type": "string",
        "required": True,
        "description": "name of the table, such as products or shop.products",
    },
    "ddl": {
        "type": "path",
        "required": True,
        "exists": True,
        "description": "SQL file that defines the table, and the tables and types it refers to",
    },
    "package": {
        "type": "string",
        "required": True,
        "description": "Java package of the code, such as com.example.shop",
    },
    "scope": {
        "type": "string",
        "choices": [DOMAIN, REPOSITORY, FULL],
        "default": FULL,
        "description": "what to write: the entity, the repository for an existing entity, or both",
    },
    "tenant_column": {
        "type": "string",
        "default": "tenant_id",
        "description": "column that says which tenant a row belongs to",
    },
    "java_version": {
        "type": "int",
        "default": 17,
        "description": "Java version that the code is compiled for",
    },
}

_CLASS = re.compile(r"[A-Z][A-Za-z0-9_]*")
_PACKAGE = re.compile(r"[a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)*")
_SQL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*(?:\.[A-Za-z_][A-Za-z0-9_$]*)*")
_FORMS: Mapping[str, tuple[re.Pattern[str], str]] = {
    "entity": (_CLASS, "a Java class name, such as Product"),
    "package": (_PACKAGE, "a Java package, such as com.example.shop"),
    "table": (_SQL_NAME, "the name of a table, such as products or shop.products"),
    "tenant_column": (_SQL_NAME, "the name of a column, such as tenant_id"),
}


class JpaMtProfile(TemplateProfile):
    """Entities and repositories for tables that several tenants share."""

    templates = HERE / "templates"
    standards = STANDARDS

    @classmethod
    def get_metadata(cls) -> Mapping[str, Any]:
        """Returns name, description and context schema."""
        return {
            "name": "jpa-mt",
            "description": "Multi-tenant JPA entities and repositories from a table definition.",
            "context_schema": CONTEXT_SCHEMA,
        }

    def context_problems(self, context: Mapping[str, Any]) -> Mapping[str, str]:
        """Returns the names that Java or SQL would not accept, or the definition does not have."""
        problems = {
            name: f"{context[name]!r:.80} is not {meaning}"
            for name, (form, meaning) in _FORMS.items()
            if not form.fullmatch(context[name])
        }
        if problems.keys() & {"table", "tenant_column"}:
            return problems
        return {**problems, **_definition_problems(context)}

    def template_variables(self, context: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns what the templates need to know about the table and the code."""
        package, scope = context["package"], context["scope"]
        return {
            "ENTITY": context["entity"],
            "TABLE": context["table"],
            "DDL": fenced(context["ddl_text"], "sql").rstrip("\n"),
            "PACKAGE": package,
            "FOLDER": f"src/main/java/{package.replace('.', '/')}",
            "TEST_FOLDER": f"src/test/java/{package.replace('.', '/')}",
            "TENANT_COLUMN": context["tenant_column"],
            "JAVA_VERSION": context["java_version"],
            "DOMAIN": scope in (DOMAIN, FULL),
            "REPOSITORY": scope in (REPOSITORY, FULL),
        }


# What the reader must not take for names: comments and quoted texts.
_NOT_NAMES = re.compile(r"--[^\n]*|/\*.*?(?:\*/|\Z)|'(?:[^']|'')*'?", re.DOTALL)
# The limit covers all modifiers of a database, and keeps a text full of "create" fast to search.
_CREATES = re.compile(r"\bcreate\s+(?:\w+\s+){0,6}(?:table|view)\b", re.IGNORECASE)
_FROM_ELSEWHERE = {"like", "select", "inherits", "of"}
"""What a definition has whose columns come from another table or a query."""


def _definition_problems(context: Mapping[str, Any]) -> dict[str, str]:
    """Returns the names that the definition does not have; the model would invent them."""
    if "ddl_text" not in context:
        return {"ddl": f"{context['ddl']!s:.80} is a folder, not an SQL file"}
    text = _NOT_NAMES.sub(" ", context["ddl_text"])
    if not _CREATES.search(text):
        return {"ddl": f"found no CREATE TABLE in {context['ddl']!s:.80}"}
    words = set(re.findall(r"[\w$]+", text.lower()))
    named = ["table"] if words & _FROM_ELSEWHERE else ["table", "tenant_column"]
    return {
        field: f"the definition does not name {context[field]!r}"
        for field in named
        if not words.issuperset(context[field].lower().split("."))
    }
