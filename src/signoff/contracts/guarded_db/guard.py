"""Checks statements: allows those that read or change selected rows, and refuses all others.

There are lists of what is allowed: first words, parts of the parsed statement, functions. A text
that cannot be parsed, or that our lexer and the parser read differently, is refused. This is the
first line of defense; the databases have a second one (`sqlite`, `postgres`).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from signoff.contracts.guarded_db.verdict import (
    ALLOWED_FIRST_WORDS,
    SEND_ONE_STATEMENT,
    USE_PLAIN_STATEMENT,
    Allowed,
    Dialect,
    Refused,
    Verdict,
    refusal_of,
)
from signoff.core.errors import NotAllowed

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_COMMENT = r"--[^\r\n]*|/\*(?:(?!/\*|\*/).)*\*/"
# SQLite and PostgreSQL disagree about where a comment inside a comment ends. It is not matched
# here, so it stays in the bare text and is refused.

_SQLITE = rf"""
    (?P<comment>{_COMMENT})
  | '(?:[^']|'')*' | "(?:[^"]|"")*" | `(?:[^`]|``)*` | \[[^\]]*\]
"""

_POSTGRES = rf"""
    (?P<comment>{_COMMENT})
  | (?<![\w$])[eE]'(?:[^'\\]|''|\\.)*'
  | '(?:[^']|'')*' | "(?:[^"]|"")*"
  | (?<![\w$])\$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$
"""

_LEXERS: dict[Dialect, re.Pattern[str]] = {
    "sqlite": re.compile(_SQLITE, re.VERBOSE | re.DOTALL),
    "postgres": re.compile(_POSTGRES, re.VERBOSE | re.DOTALL),
}

_CALLED = re.compile(r"([^\W\d]\w*)\s*\(")
_NUMBERED = re.compile(r"(?<![\w$])\$\d+")
_NAMED = re.compile(r"(?<![:\w]):([^\W\d]\w*)")


@dataclass(frozen=True)
class LexedStatement:
    """A statement without its quoted parts and comments."""

    bare: str
    """The text with spaces instead of comments and quoted parts; as long as the original."""
    quotes: frozenset[int]
    """The position of the last character of each quoted part."""

    def oddity(self) -> str:
        """Returns what makes the text ambiguous; empty if nothing does."""
        if "/*" in self.bare or "*/" in self.bare:
            return "a comment that is not closed, or is inside another one"
        if any(mark in self.bare for mark in "'\"`"):
            return "a quote that is not closed"
        if re.search(r"\r(?!\n)", self.bare):
            return "a carriage return, which ends a comment for some parsers only"
        if re.search(r"(?i)(?<!\w)u&\s", self.bare):
            return "a string with U& escapes"
        strange = next((c for c in self.bare if _is_ambiguous(c)), None)
        return "" if strange is None else f"the character U+{ord(strange):04X} outside quotes"


def lex(sql: str, dialect: Dialect) -> LexedStatement:
    """Separates a statement from its quoted parts and comments."""
    quotes = []

    def blank(match: re.Match[str]) -> str:
        if match["comment"] is None:
            quotes.append(match.end() - 1)
        return " " * len(match[0])

    return LexedStatement(_LEXERS[dialect].sub(blank, sql), frozenset(quotes))


def called_names(lexed: LexedStatement) -> frozenset[str]:
    """Returns the names before a parenthesis, in lower case: functions, and a few other names."""
    return frozenset(name.lower() for name in _CALLED.findall(lexed.bare))


def separate_parameters(sql: str, dialect: Dialect) -> str:
    """Returns a statement with a blank after each `$1`.

    The parser takes `$1,$` for the beginning of a quoted text; PostgreSQL does not, because a tag
    cannot begin with a digit.
    """
    if dialect != "postgres" or "$" not in sql:
        return sql
    pieces, last = [], 0
    for match in _NUMBERED.finditer(lex(sql, dialect).bare):
        pieces += [sql[last : match.end()], " "]
        last = match.end()
    return "".join([*pieces, sql[last:]])


def named_parameters(sql: str, dialect: Dialect) -> Iterator[re.Match[str]]:
    """Yields each `:name` outside of quotes and comments."""
    return _NAMED.finditer(lex(sql, dialect).bare)


def _is_ambiguous(char: str) -> bool:
    """Whether parsers may treat a character differently: blanks, marks, letters that fold."""
    if char.isascii():
        return not char.isprintable() and char not in "\t\n\r"
    # The long s becomes S and the Kelvin sign k when case is folded: a keyword for some parsers.
    # Sharp s becomes two letters, but is common in names and part of no keyword that matters.
    folded = char.upper() + char.lower() + char.casefold()
    return not char.isalnum() or (char != "ß" and any(c.isascii() for c in folded))


MOST_CHARACTERS = 1_000_000
"""A longer statement is refused; long texts belong in parameters."""

CACHED_STATEMENTS = 2_000
CACHED_CHARACTERS = 20_000
"""A longer statement contains a text of its own, so it will hardly occur again."""

_PARSER_ERRORS = (RecursionError, ValueError, TypeError, AttributeError, LookupError)
"""What a parser that was not written for hostile input may raise; the statement is refused."""

_FIRST_WORD = re.compile(r"[\s(]*(\w*)")

_parsing: ContextVar[bool] = ContextVar("parsing", default=False)
"""Whether this thread is parsing a statement."""


class Guard:
    """Checks the statements of one dialect, and caches the verdicts."""

    def __init__(self, dialect: Dialect, *, functions: Iterable[str] = ()) -> None:
        self.dialect: Dialect = dialect
        self._own_functions = frozenset(name.lower() for name in functions)
        self._verdicts: dict[str, Verdict] = {}

    def verdict(self, sql: str) -> Verdict:
        """Returns whether a statement may run, and what it may do; never raises for a bad one."""
        known = self._verdicts.get(sql)
        if known is not None:
            return known
        verdict = self._find_verdict(sql)
        if len(sql) <= CACHED_CHARACTERS:
            if len(self._verdicts) >= CACHED_STATEMENTS:
                self._verdicts.clear()
            self._verdicts[sql] = verdict
        return verdict

    def check(self, sql: str) -> Allowed:
        """Returns what a statement may do; raises `NotAllowed` if it may not run."""
        verdict = self.verdict(sql)
        if isinstance(verdict, Refused):
            raise NotAllowed(f"{verdict} (in: {excerpt(sql)})")
        return verdict

    def _find_verdict(self, sql: str) -> Verdict:
        if len(sql) > MOST_CHARACTERS:
            return Refused("the statement is too long", "pass long texts as parameters")
        sql = separate_parameters(sql, self.dialect)
        lexed = lex(sql, self.dialect)
        refused = _check_text(sql, lexed)
        if refused is not None:
            return refused
        try:
            trees = self._parse(sql, lexed)
        except _UnreadableError as error:
            return Refused(f"the statement is ambiguous or invalid ({error})", USE_PLAIN_STATEMENT)
        # The first check looked for semicolons in the text; this one asks the parser, which reads
        # it in another way.
        if len(trees) != 1:
            return Refused("several statements in one text are refused", SEND_ONE_STATEMENT)
        return self._check_tree(trees[0], called_names(lexed))

    def _check_tree(self, tree: Expr, called: frozenset[str]) -> Verdict:
        # Imported here, so that a project without a database does not load the parser.
        from signoff.contracts.guarded_db.tree import StatementChecker

        try:
            with _silent_parser():
                return StatementChecker(self.dialect, self._own_functions, called).verdict(tree)
        except _PARSER_ERRORS as error:
            what = f"the statement cannot be checked ({type(error).__name__})"
            return Refused(what, "write it in a simpler way")

    def _parse(self, sql: str, lexed: LexedStatement) -> list[Expr]:
        from sqlglot import Dialect as Grammar
        from sqlglot.errors import SqlglotError

        grammar = Grammar.get_or_raise(self.dialect)
        try:
            tokens = grammar.tokenize(sql)
            if frozenset(_quote_ends(sql, tokens)) != lexed.quotes:
                raise _UnreadableError("its quotes can be read in two ways")
            with _silent_parser():
                trees = grammar.parser().parse(tokens, sql)
            return [tree for tree in trees if tree is not None]
        except SqlglotError as error:
            raise _UnreadableError(str(error).splitlines()[0][:120]) from error
        except _PARSER_ERRORS as error:
            raise _UnreadableError(f"the parser failed with {type(error).__name__}") from error


def excerpt(sql: str) -> str:
    """Returns the beginning of a statement, on one line."""
    line = " ".join(sql.split())
    return line if len(line) <= 80 else line[:77] + "..."


class _UnreadableError(Exception):
    """A statement that cannot be parsed with certainty."""


@contextmanager
def _silent_parser() -> Iterator[None]:
    """Suppresses the parser's log messages about statements that are refused anyway.

    Only those of this thread: the program may use the same parser for other purposes.
    """
    # Adding a filter twice has no effect, but a new logging configuration may have removed it.
    logging.getLogger("sqlglot").addFilter(_is_not_ours)
    token = _parsing.set(True)
    try:
        yield
    finally:
        _parsing.reset(token)


def _is_not_ours(_record: logging.LogRecord) -> bool:
    return not _parsing.get()


def _check_text(sql: str, lexed: LexedStatement) -> Refused | None:
    """Refuses what needs no parser: odd characters, several statements, other first words."""
    if "\0" in sql:
        return Refused("the statement contains a NUL character", USE_PLAIN_STATEMENT)
    oddity = lexed.oddity()
    if oddity:
        advice = "write it plainly, with values as parameters"
        return Refused(f"the statement contains {oddity}", advice)
    statement = lexed.bare.rstrip("; \t\r\n")
    if ";" in statement:
        return Refused("several statements in one text are refused", SEND_ONE_STATEMENT)
    match = _FIRST_WORD.match(statement)
    word = match[1].lower() if match else ""
    return None if word in ALLOWED_FIRST_WORDS else refusal_of(word)


def _quote_ends(sql: str, tokens: Iterable[object]) -> Iterator[int]:
    """Yields the positions at which quoted parts end, according to the parser's tokenizer."""
    for token in tokens:
        start, end = getattr(token, "start", 0), getattr(token, "end", 0)
        if end > start and sql[end] in "'\"`]$" and not sql[start : end + 1].strip("$").isdigit():
            yield end
