"""Judges statements: lets through what reads or changes named rows, and refuses all the rest.

The rule is a list of what is allowed, on the first word, on the parsed tree and on the functions
called. A text that cannot be parsed, or that two readers read differently, is refused. This is
the first line; the databases hold a second one (`authorizer`, `postgres`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from signoff.errors import NotAllowed
from signoff.guarded_db.advice import ENTRANCES, ONE_AT_A_TIME, PLAIN, refusal_of
from signoff.guarded_db.lexing import LexedStatement, read
from signoff.guarded_db.quiet import quiet
from signoff.guarded_db.verdict import Allowed, Dialect, Refused, Verdict

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

MOST_CHARACTERS = 1_000_000
"""A longer statement is refused; long texts are bound as parameters."""

CACHED_STATEMENTS = 2_000
CACHED_CHARACTERS = 20_000
"""A longer statement holds a text of its own and will hardly come again."""

_TRIPPED = (RecursionError, ValueError, TypeError, AttributeError, LookupError)
"""What a parser that was not written for hostile input may raise; refused like all else."""

_FIRST_WORD = re.compile(r"[\s(]*(\w*)")


class Guard:
    """Judges the statements of one dialect; remembers what it has judged."""

    def __init__(self, dialect: Dialect, *, functions: Iterable[str] = ()) -> None:
        self.dialect: Dialect = dialect
        self._own_functions = frozenset(name.lower() for name in functions)
        self._judged: dict[str, Verdict] = {}

    def judge(self, sql: str) -> Verdict:
        """Returns whether a statement may run, and as what; never raises for a bad one."""
        known = self._judged.get(sql)
        if known is not None:
            return known
        verdict = self._judge(sql)
        if len(sql) <= CACHED_CHARACTERS:
            if len(self._judged) >= CACHED_STATEMENTS:
                self._judged.clear()
            self._judged[sql] = verdict
        return verdict

    def check(self, sql: str) -> Allowed:
        """Returns what a statement may do; one that may not run is an error that says why."""
        verdict = self.judge(sql)
        if isinstance(verdict, Refused):
            raise NotAllowed(f"{verdict} (in: {excerpt(sql)})")
        return verdict

    def _judge(self, sql: str) -> Verdict:
        if len(sql) > MOST_CHARACTERS:
            return Refused("the statement is too long to judge", "bind long texts as parameters")
        reading = read(sql, self.dialect)
        refused = _by_its_letters(sql, reading)
        if refused is not None:
            return refused
        try:
            trees = self._parsed(sql, reading)
        except _UnreadableError as error:
            return Refused(f"the statement cannot be read for certain ({error})", PLAIN)
        if len(trees) != 1:
            return Refused("several statements in one text are refused", ONE_AT_A_TIME)
        return self._by_its_tree(trees[0])

    def _by_its_tree(self, tree: Expr) -> Verdict:
        # Imported here: a project without a database of its own does not load the parser.
        from signoff.guarded_db.tree import StatementChecker

        try:
            return StatementChecker(self.dialect, self._own_functions).verdict(tree)
        except _TRIPPED as error:
            said = f"the statement cannot be judged ({type(error).__name__})"
            return Refused(said, "write it in a simpler way")

    def _parsed(self, sql: str, reading: LexedStatement) -> list[Expr]:
        from sqlglot import Dialect as Grammar
        from sqlglot.errors import SqlglotError

        grammar = Grammar.get_or_raise(self.dialect)
        try:
            tokens = grammar.tokenize(sql)
            seen = frozenset(_quote_ends(sql, tokens))
            if seen != reading.quotes:
                raise _UnreadableError("its quotes can be read in two ways")
            with quiet():
                trees = grammar.parser().parse(tokens, sql)
            return [tree for tree in trees if tree is not None]
        except SqlglotError as error:
            raise _UnreadableError(str(error).splitlines()[0][:120]) from error
        except _TRIPPED as error:
            raise _UnreadableError(f"the parser failed with {type(error).__name__}") from error


def excerpt(sql: str) -> str:
    """Returns the beginning of a statement, on one line."""
    line = " ".join(sql.split())
    return line if len(line) <= 80 else line[:77] + "..."


class _UnreadableError(Exception):
    """A statement that cannot be read for certain."""


def _by_its_letters(sql: str, reading: LexedStatement) -> Refused | None:
    """Refuses what needs no parser: odd characters, several statements, other first words."""
    if "\0" in sql:
        return Refused("the statement holds a NUL character", PLAIN)
    oddity = reading.oddity()
    if oddity:
        return Refused(f"the statement holds {oddity}", "write it plainly, values as parameters")
    statement = reading.bare.rstrip("; \t\r\n")
    if ";" in statement:
        return Refused("several statements in one text are refused", ONE_AT_A_TIME)
    found = _FIRST_WORD.match(statement)
    word = found[1].lower() if found else ""
    return None if word in ENTRANCES else refusal_of(word)


def _quote_ends(sql: str, tokens: Iterable[object]) -> Iterator[int]:
    """Returns where the parser's tokenizer saw quoted pieces end."""
    for token in tokens:
        start, end = getattr(token, "start", 0), getattr(token, "end", 0)
        if end > start and sql[end] in "'\"`]$" and not sql[start : end + 1].strip("$").isdigit():
            yield end
