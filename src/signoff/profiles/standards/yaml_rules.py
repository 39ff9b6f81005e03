"""Standards as single rules in YAML files, `*.rules.yml`.

    JPA-001: "C: Every entity has a key."

The id of a rule is a prefix and a number. Its text begins with how much it matters: C, M or m.
Rules may be in groups, `naming: {JPA-002: "M: ..."}`, whose names the bundle has as headings.
The configuration selects rules by their files and by the prefixes of their ids. Neither is
needed: no files means all files, no prefixes means all rules of the files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from pydantic import Field

from signoff.documents.sections import Section
from signoff.documents.yaml_text import Document, read_mapping
from signoff.errors import Problem, ProviderError
from signoff.profiles.standards.folder import (
    FolderConfig,
    FolderStandards,
    StandardsFiles,
    choose_scope,
    join_files,
)

PATTERN = "*.rules.yml"
LEGEND = "C: must be followed. M: should be followed. m: good to follow.\n\n"

_ID = re.compile(r"([A-Z][A-Z0-9]*(?:-[A-Z][A-Z0-9]*)*)-[0-9]{3,}")
_TEXT = re.compile(r"([CMm]):\s*(\S.*)", re.DOTALL)


class RuleFilter(Section):
    """Selects rules."""

    files: list[str] = Field(default_factory=list, description="a list of files in the root")
    prefixes: list[str] = Field(default_factory=list, description="a list such as [JPA, TEN]")


class YamlRulesConfig(RuleFilter, FolderConfig):
    """The configuration of `yaml-rules`: one filter, or one for each scope."""

    scopes: dict[str, RuleFilter] = Field(
        default_factory=dict, description="name: {files: [...], prefixes: [...]}"
    )


class YamlRulesStandards(FolderStandards[YamlRulesConfig]):
    """Bundles the rules that the configuration selects."""

    description = f"rules in {PATTERN}, by file and by the prefix of their ids"
    model = YamlRulesConfig

    def _bundle(self, config: YamlRulesConfig, scope: str, files: StandardsFiles) -> str:
        chosen = choose_scope(config.scopes, scope) if config.scopes else config
        # Every rule of these files is checked, also one that no prefix selects: its mistake would
        # show only when another scope is used.
        rules = _read_rules(files.read(chosen.files or files.names(PATTERN)))
        prefixes = [prefix.removesuffix("-") for prefix in chosen.prefixes]
        self.warnings = [*_repeated(rules), *_unused(rules, prefixes)]
        selected = dict(_selected(rules, prefixes))
        return LEGEND + join_files(selected) if selected else ""

    def _problem(self, config: YamlRulesConfig) -> str:
        if config.scopes and (config.files or config.prefixes):
            return "files and prefixes belong in the scopes"
        return super()._problem(config)


@dataclass(frozen=True)
class StandardsRule:
    """One rule, and the group of its file that it is in; empty for none."""

    text: str
    group: str = ""


Rules = Mapping[str, StandardsRule]
"""Rules by their ids, in the order of their file."""


def _read_rules(texts: Mapping[str, str]) -> dict[str, Rules]:
    """Returns the rules of each file by id; raises `ProviderError` with every problem."""
    problems: list[Problem] = []
    rules = {name: _rules_of(name, text, problems) for name, text in texts.items()}
    if problems:
        raise ProviderError("; ".join(map(str, problems)))
    return rules


def _rules_of(name: str, text: str, problems: list[Problem]) -> Rules:
    document = read_mapping(text, name, problems, "rules")
    if document is None:
        return {}
    rules: dict[str, StandardsRule] = {}
    for path, value in _stated(document.content):
        *group, key = path
        problem = _problem_with(path, value, document)
        if key in rules:
            problem = Problem(document.at(path), f"{key} is in two groups", "remove one")
        if problem:
            problems.append(problem)
        else:
            rules[key] = StandardsRule(" ".join(value.split()), "".join(group))
    return rules


def _stated(content: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yields each rule of a file with its path: its id, or its group and its id."""
    for key, value in content.items():
        if isinstance(value, dict) and not _ID.fullmatch(key):
            yield from (((key, rule), text) for rule, text in value.items())
        else:
            yield (key,), value


def _problem_with(path: tuple[str, ...], value: Any, document: Document) -> Problem | None:
    where, key = document.at(path), str(path[-1])
    if not _ID.fullmatch(key):
        return Problem(where, f"{key!r:.60} is not the id of a rule", "write it like JPA-001")
    if not isinstance(value, str) or not _TEXT.fullmatch(value.strip()):
        return Problem(where, f"{key} has no valid text", 'write it like "C: Every entity ..."')
    return None


def _repeated(rules: Mapping[str, Rules]) -> Iterator[str]:
    first: dict[str, str] = {}
    for name, texts in rules.items():
        for rule in texts:
            if rule in first:
                yield f"rule {rule} of {name} is ignored: {first[rule]} already has that id"
            first.setdefault(rule, name)


def _unused(rules: Mapping[str, Rules], prefixes: Sequence[str]) -> Iterator[str]:
    ids = [rule for texts in rules.values() for rule in texts]
    for prefix in prefixes:
        if not any(_has_prefix(rule, prefix) for rule in ids):
            yield f"no rule has the prefix {prefix!r}"


def _selected(rules: Mapping[str, Rules], prefixes: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yields the selected rules of each file that has any; of a repeated id, the first one."""
    seen: set[str] = set()
    for name, texts in rules.items():
        new = [rule for rule in texts if rule not in seen]
        seen.update(new)
        wanted = [
            rule for rule in new if not prefixes or any(_has_prefix(rule, p) for p in prefixes)
        ]
        if wanted:
            yield name, "\n".join(_lines({rule: texts[rule] for rule in wanted}))


def _lines(rules: Rules) -> Iterator[str]:
    """Yields the rules as lines; each group begins with its name."""
    for group, members in groupby(rules, lambda rule: rules[rule].group):
        if group:
            yield f"\n{group}:"
        yield from (f"{rule} {rules[rule].text}" for rule in members)


def _has_prefix(rule: str, prefix: str) -> bool:
    # A prefix ends where a part of the id ends: JPA is not a prefix of JPAX-001.
    return rule.startswith(f"{prefix}-")
