"""The shipped providers of standards: each reads the files of a folder, by scope.

`scoped-layer-fs` bundles whole files, sorted by the layers of a system:

    root: standards
    scopes:
      domain: {layers: [entity]}
      full: {layers: [entity, repository]}
    layer_standards:
      _universal: [java.md]
      entity: [entity.md, naming.md]
      repository: [repository.md, naming.md]

A scope gets the universal files and those of its own layers, nothing else: scopes do not build
on each other.

`yaml-rules` bundles single rules of files such as `jpa.rules.yml`:

    JPA-001: "C: Every entity has a key."

The id of a rule is a prefix and a number. Its text begins with how much it matters: C, M or m.
The configuration selects rules by their files and by the prefixes of their ids. Neither is
needed: no files means all files, no prefixes means all rules of the files.
"""

from __future__ import annotations

import os
import re
import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import Field, ValidationError

from signoff.core.errors import Problem, ProviderError
from signoff.documents.files import read_text
from signoff.documents.mistakes import mistakes_of
from signoff.documents.sections import Section
from signoff.documents.yaml_text import Document, read_mapping
from signoff.profiles.providers import StandardsProvider

RESPONSE_SECONDS = 30.0
"""Reading all files may take this long; the folder may be on a network."""


class FolderConfig(Section):
    """The configuration that all providers with a folder have."""

    provider: str = ""
    """The key of the provider, for the engine."""
    root: Path = Field(description="the folder of the standards")
    scope: str = ""
    """The scope to use; by default the `scope` of the context."""


C = TypeVar("C", bound=FolderConfig)
S = TypeVar("S")


class FolderStandards(StandardsProvider, Generic[C]):
    """Creates a bundle from the files of a folder; without a configuration it is empty."""

    model: ClassVar[type[Any]]
    """The pydantic model of its configuration, a `C`."""

    def validate(self) -> None:
        """Raises `ProviderError` with everything that is wrong with its configuration."""
        if self.config:
            self._read_config()

    def create_bundle(
        self,
        context: Mapping[str, Any],
        connection_timeout: float | None = None,  # noqa: ARG002  # nothing is connected to
        response_timeout: float | None = None,
    ) -> str:
        """Returns the standards of the context's scope; raises `ProviderError`.

        An unknown scope is a `ValueError`, which lists the known ones.
        """
        if not self.config:
            return ""
        config = self._read_config()
        scope = config.scope or str(context.get("scope") or "")
        seconds = RESPONSE_SECONDS if response_timeout is None else response_timeout
        return self._bundle(config, scope, StandardsFiles(self._root(config), seconds))

    @abstractmethod
    def _bundle(self, config: C, scope: str, files: StandardsFiles) -> str:
        """Returns the standards of a scope."""

    def _read_config(self) -> C:
        try:
            config: C = self.model.model_validate(dict(self.config))
        except ValidationError as error:
            mistakes = mistakes_of(error, self.model)
            problems = [
                each.problem(lambda _path: "configuration of the standards") for each in mistakes
            ]
            raise ProviderError("; ".join(map(str, problems))) from error
        problem = self._problem(config)
        if problem:
            raise ProviderError(f"configuration of the standards: {problem}")
        return config

    def _problem(self, config: C) -> str:
        """Returns what is wrong with a configuration as a whole; empty if nothing is."""
        root = self._root(config)
        return "" if root.is_dir() else f"the folder {root} does not exist"

    def _root(self, config: C) -> Path:
        own = os.path.expanduser(config.root)  # noqa: PTH111  # raises for no user, unlike Path's
        return Path(self.folder, own).resolve()


class StandardsFiles:
    """Reads the files of a folder before a deadline, and nothing outside of it."""

    def __init__(self, root: Path, seconds: float) -> None:
        self._root = root
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds

    def names(self, pattern: str) -> list[str]:
        """Returns the names of the files that match a pattern, sorted."""
        return sorted(path.name for path in self._root.glob(pattern))

    def read(self, names: Iterable[str]) -> dict[str, str]:
        """Returns the texts of files by name; raises `ProviderError` with every problem."""
        texts: dict[str, str] = {}
        problems: list[Problem] = []
        for name in dict.fromkeys(names):
            # Checked between files: a slow network folder ends the reading, and one large file does
            # not.
            if time.monotonic() > self._deadline:
                raise ProviderError(f"reading the standards took more than {self._seconds:g} s")
            # Resolved before it is compared, so a link inside the folder cannot lead out of it.
            path = Path(self._root, name).resolve()
            if not path.is_relative_to(self._root):
                problems.append(
                    Problem(name, f"is outside the folder of the standards {self._root}")
                )
                continue
            text = read_text(path, problems, name=str(path))
            if text is not None:
                texts[name] = text
        if problems:
            raise ProviderError("; ".join(map(str, problems)))
        return texts


def choose_scope(scopes: Mapping[str, S], name: str) -> S:
    """Returns a scope by its name; raises `ValueError`, which lists the known ones."""
    if name in scopes:
        return scopes[name]
    known = ", ".join(sorted(scopes)) or "none"
    what = f"unknown scope {name!r}" if name else "the context has no scope"
    raise ValueError(f"{what}; valid: {known}")


def join_files(texts: Mapping[str, str]) -> str:
    """Returns the texts of files one after the other, each under its name."""
    trimmed = {name: text.strip("\n") for name, text in texts.items()}
    return "\n".join(f"--- {name} ---\n{text}\n" for name, text in trimmed.items())


UNIVERSAL = "_universal"
"""The layer that belongs to every scope."""


class LayerScope(Section):
    """What a scope consists of."""

    layers: list[str] = Field(default_factory=list, description="a list of layers")


class ScopedLayerConfig(FolderConfig):
    """The configuration of `scoped-layer-fs`."""

    scopes: dict[str, LayerScope] = Field(description="name: {layers: [...]}")
    layer_standards: dict[str, list[str]] = Field(description="layer: [file, ...]")


class ScopedLayerStandards(FolderStandards[ScopedLayerConfig]):
    """Bundles the files of a scope's layers, the universal ones first."""

    description = "files of a folder, by the layers of a scope"
    model = ScopedLayerConfig

    def _bundle(self, config: ScopedLayerConfig, scope: str, files: StandardsFiles) -> str:
        layers = [UNIVERSAL, *choose_scope(config.scopes, scope).layers]
        names = [name for layer in layers for name in config.layer_standards.get(layer, ())]
        return join_files(files.read(names))

    def _problem(self, config: ScopedLayerConfig) -> str:
        named = {layer for scope in config.scopes.values() for layer in scope.layers}
        unknown = sorted(named - {*config.layer_standards})
        if unknown:
            known = ", ".join(sorted(config.layer_standards)) or "none"
            return f"unknown layers {', '.join(unknown)}; valid: {known}"
        return super()._problem(config)


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


Rules = Mapping[str, str]
"""The texts of rules by their ids, in the order of their file."""


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
    rules: dict[str, str] = {}
    for key, value in document.content.items():
        if problem := _problem_with(key, value, document):
            problems.append(problem)
        else:
            rules[key] = " ".join(value.split())
    return rules


def _problem_with(key: str, value: Any, document: Document) -> Problem | None:
    where = document.at((key,))
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
            yield name, "\n".join(f"{rule} {texts[rule]}" for rule in wanted)


def _has_prefix(rule: str, prefix: str) -> bool:
    # A prefix ends where a part of the id ends: JPA is not a prefix of JPAX-001.
    return rule.startswith(f"{prefix}-")
