"""Multi-tenant JPA entities and repositories, from a table definition.

Tenants share the tables, and a column says which tenant a row belongs to. The code uses plain
Jakarta Persistence and Spring Data; tenants are separated by what the code says, not by a filter
that a library adds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signoff.core.errors import UnknownName
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


def _definition_problems(context: Mapping[str, Any]) -> dict[str, str]:
    if "ddl_text" not in context:
        return {"ddl": f"{context['ddl']!s:.80} is a folder, not an SQL file"}
    name, column = context["table"], context["tenant_column"]
    tables = find_tables(context["ddl_text"])
    if not tables:
        return {"ddl": f"found no CREATE TABLE in {context['ddl']!s:.80}"}
    exact = [table for table in tables if table.name.lower() == name.lower()]
    found = exact or [table for table in tables if table.matches(name)]
    if not found:
        return {"table": str(UnknownName("table", name, [table.name for table in tables]))}
    names = sorted({table.name for table in found})
    if len(names) > 1:
        return {"table": f"{name!r} may be {' or '.join(names[:5])}; add the schema"}
    if not any(table.may_have(column) for table in found):
        return {"tenant_column": f"the definition of {names[0]} has no column {column!r}"}
    return {}


# Which tables an SQL file defines, and what their definitions name.
#
# The reader finds names and skips everything else, so it works for the dialects of all common
# databases. It does not tell columns from other words: a definition that it does not understand
# must not stop a session.

# Every alternative that looks for an end accepts the end of the text too. Otherwise a file full
# of unclosed quotes would be searched to its end once for each of them.
_TOKEN = re.compile(
    r"""
      --[^\n]* | /\*.*?(?:\*/|\Z)
    | '(?:[^']|'')*'? | \$(?P<tag>\w*)\$.*?(?:\$(?P=tag)\$|\Z)
    | "(?P<quoted>[^"]*)"? | `(?P<mysql>[^`]*)`? | \[(?P<mssql>[^\W\d][^][\n]*)\]
    | (?P<plain>[^\W\d][\w$]*) | (?P<mark>[().,;])
    """,
    re.DOTALL | re.VERBOSE,
)
_NAME = re.compile(r"[^\W\d][\w$]{0,127}")
"""A name that parameters can have; databases allow at most 128 characters."""
_OTHER = "?"
"""A quoted name of another form."""

_MODIFIERS = {
    *("or", "replace", "global", "local", "temporary", "temp", "unlogged", "foreign", "external"),
    *("materialized", "recursive"),
}
"""What may appear between CREATE and TABLE or VIEW."""
_BEFORE_NAME = {"if", "not", "exists", "only"}
_FROM_ELSEWHERE = {"like", "select", "inherits", "of"}
"""What a definition has whose columns come from another table or a query."""


@dataclass(frozen=True)
class TableDefinition:
    """A table or view."""

    name: str
    """As the file has it, with the schema if there is one."""
    words: frozenset[str]
    """Everything that its definition names, in lower case: columns, types and keywords."""

    def matches(self, name: str) -> bool:
        """Returns whether a name may mean this table: either may leave out the schema."""
        own, other = (text.lower().split(".")[::-1] for text in (self.name, name))
        return all(a == b for a, b in zip(own, other, strict=False))

    def may_have(self, column: str) -> bool:
        """Returns whether the definition names a column, or does not list them all."""
        return column.lower() in self.words or not _FROM_ELSEWHERE.isdisjoint(self.words)


def find_tables(sql: str) -> list[TableDefinition]:
    """Returns the tables and views that a text creates, with what later statements add to them."""
    found: list[tuple[str, set[str]]] = []
    added: dict[str, set[str]] = {}
    for tokens in _statements(_tokens(sql)):
        words = [token.lower() for token in tokens]
        if words[:2] == ["alter", "table"]:
            name, end = _name(tokens, 2)
            added.setdefault(_short(name), set()).update(words[end:])
        elif words[:1] == ["create"]:
            kind = next((i for i, word in enumerate(words[1:], 1) if word not in _MODIFIERS), 0)
            if words[kind] in ("table", "view"):
                name, end = _name(tokens, kind + 1)
                found.append((name, set(words[end:])))
    return [
        TableDefinition(name, frozenset(words | added.get(_short(name), set())))
        for name, words in found
    ]


def _tokens(sql: str) -> Iterator[str]:
    for match in _TOKEN.finditer(sql):
        name = match["quoted"] or match["mysql"] or match["mssql"] or match["plain"]
        if name:
            yield name if _NAME.fullmatch(name) else _OTHER
        elif match["mark"]:
            yield match["mark"]


def _statements(tokens: Iterable[str]) -> Iterator[list[str]]:
    """Yields the tokens of each statement. Not all dialects need a semicolon between two."""
    statement: list[str] = []
    for token in tokens:
        word = token.lower()
        if word == "table" and [last.lower() for last in statement[-1:]] == ["alter"]:
            yield statement[:-1]
            statement = statement[-1:]
        elif word in ("create", ";"):
            yield statement
            statement = []
        statement.append(token)
    yield statement


def _name(tokens: Sequence[str], start: int) -> tuple[str, int]:
    """Returns the name that begins at a position or soon after it, and where it ends."""
    while start < len(tokens) and tokens[start].lower() in _BEFORE_NAME:
        start += 1
    end = start + 1
    # At most server, database, schema and table.
    while tokens[end : end + 1] == ["."] and end < start + 7:
        end += 2
    return "".join(tokens[start:end]), end


def _short(name: str) -> str:
    """Returns a name without its schema: only some statements of a file may have it."""
    return name.lower().rpartition(".")[2]
