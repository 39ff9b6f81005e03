from pathlib import Path
from typing import Any

import pytest

from signoff.core.errors import ProviderError
from signoff.profiles import StandardsProviderFactory
from signoff.profiles.standards import LEGEND, YamlRulesStandards

JPA = """
# comment
JPA-001: "C: Every entity has a key."
JPA-002: 'M: Names are singular.'
TEN-001: |
  m: A tenant column
  is never updated.
"""
JAVA = 'JAVA-001: "C: It compiles."\nJPAX-001: "M: Other."\n'


def provider(folder: Path, **config: Any) -> YamlRulesStandards:
    (folder / "jpa.rules.yml").write_text(JPA)
    (folder / "java.rules.yml").write_text(JAVA)
    (folder / "notes.yml").write_text("not: rules")
    return YamlRulesStandards({"root": folder, **config})


JAVA_LINES = ["--- java.rules.yml ---", "JAVA-001 C: It compiles.", "JPAX-001 M: Other."]
JPA_LINES = [
    "--- jpa.rules.yml ---",
    "JPA-001 C: Every entity has a key.",
    "JPA-002 M: Names are singular.",
    "TEN-001 m: A tenant column is never updated.",
]


def text(*sections: list[str]) -> str:
    return LEGEND + "\n".join("\n".join([*lines, ""]) for lines in sections)


@pytest.mark.parametrize(
    ("config", "bundle"),
    [
        ({}, text(JAVA_LINES, JPA_LINES)),
        ({"files": ["jpa.rules.yml"]}, text(JPA_LINES)),
        ({"files": ["jpa.rules.yml", "java.rules.yml"]}, text(JPA_LINES, JAVA_LINES)),
        ({"files": ["jpa.rules.yml", "jpa.rules.yml"], "prefixes": []}, text(JPA_LINES)),
        ({"prefixes": ["JPA"]}, text(JPA_LINES[:3])),
        ({"prefixes": ["JPA-"]}, text(JPA_LINES[:3])),
        ({"prefixes": ["TEN", "JAVA"]}, text(JAVA_LINES[:2], [JPA_LINES[0], JPA_LINES[3]])),
        ({"files": ["java.rules.yml"], "prefixes": ["JPA"]}, ""),
    ],
)
def test_rules_are_selected_by_file_and_prefix(
    tmp_path: Path, config: dict[str, Any], bundle: str
) -> None:
    """No prefixes means all rules; a prefix ends where the number begins."""
    assert provider(tmp_path, **config).create_bundle({}) == bundle


def test_scopes_are_not_cumulative(tmp_path: Path) -> None:
    """Each scope lists everything that it consists of."""
    scopes = {
        "java": {"files": ["java.rules.yml"]},
        "tenants": {"files": ["jpa.rules.yml"], "prefixes": ["TEN"]},
    }
    standards = provider(tmp_path, scopes=scopes)

    assert standards.create_bundle({"scope": "java"}) == text(JAVA_LINES)
    assert standards.create_bundle({"scope": "tenants"}) == text([JPA_LINES[0], JPA_LINES[3]])
    with pytest.raises(ValueError, match="unknown scope 'all'; valid: java, tenants"):
        standards.create_bundle({"scope": "all"})


def test_a_repeated_id_is_reported_and_the_first_rule_counts(tmp_path: Path) -> None:
    """Two rules of one id cannot be distinguished in a review."""
    standards = provider(tmp_path)
    (tmp_path / "more.rules.yml").write_text('JPA-001: "m: Keys are nice."\nJPA-009: "m: New."\n')

    bundle = standards.create_bundle({})

    assert "Every entity has a key." in bundle
    assert "Keys are nice." not in bundle
    assert "JPA-009 m: New." in bundle
    assert standards.warnings == [
        "rule JPA-001 of more.rules.yml is ignored: jpa.rules.yml already has that id"
    ]


def test_a_prefix_without_rules_is_reported(tmp_path: Path) -> None:
    """It is probably a typo, and rules are missing."""
    standards = provider(tmp_path, prefixes=["JPA", "TENANT"])

    standards.create_bundle({})

    assert standards.warnings == ["no rule has the prefix 'TENANT'"]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ('JPA-1: "C: x"', r"bad.rules.yml:1: 'JPA-1' is not the id of a rule"),
        ('jpa-001: "C: x"', "'jpa-001' is not the id"),
        ('\nnames: {JPA-001: "C: x"}', "bad.rules.yml:2: 'names' is not the id"),
        ('\nrules: "C: x"', "bad.rules.yml:2: 'rules' is not the id"),
        ('JPA-001: "X: x"', "JPA-001 has no valid text"),
        ('JPA-001: "c: x"', "JPA-001 has no valid text"),
        ('JPA-001: "C:"', "JPA-001 has no valid text"),
        ("JPA-001: 7", "JPA-001 has no valid text"),
        ("JPA-001:", "JPA-001 has no valid text"),
        ("- JPA-001", "is not a list of `key: value` rules"),
        ("", "is empty"),
        ("JPA-001: [", "bad.rules.yml:1"),
        ('JPA-001: "C: x"\nJPA-001: "C: y"', "JPA-001"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_rules_is_refused_with_its_line(
    tmp_path: Path, content: str, why: str
) -> None:
    """A rule that is silently left out is not followed."""
    standards = provider(tmp_path)
    (tmp_path / "bad.rules.yml").write_text(content)

    with pytest.raises(ProviderError, match=why):
        standards.create_bundle({})


def test_every_problem_is_reported(tmp_path: Path) -> None:
    """Authors fix all files in one go."""
    standards = provider(tmp_path)
    (tmp_path / "bad.rules.yml").write_text('x: "C: x"\ny: "C: y"')
    (tmp_path / "worse.rules.yml").write_text("")

    with pytest.raises(ProviderError) as error:
        standards.create_bundle({})

    assert all(part in str(error.value) for part in ("bad.rules.yml:1", "bad.rules.yml:2", "worse"))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """It may have been renamed since the profile was written."""
    with pytest.raises(ProviderError, match=r"gone\.rules\.yml: does not exist"):
        provider(tmp_path, files=["gone.rules.yml"]).create_bundle({})


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"file": []}, "unknown key 'file'"),
        ({"files": "jpa.rules.yml"}, "files"),
        ({"scopes": {"a": {}}, "prefixes": ["JPA"]}, "belong in the scopes"),
        ({"root": None}, "root is None"),
    ],
)
def test_a_wrong_configuration_is_refused(tmp_path: Path, config: Any, why: str) -> None:
    """The author of a profile finds out at the first session."""
    with pytest.raises(ProviderError, match=why):
        provider(tmp_path, **config).validate()


def test_an_empty_configuration_gives_an_empty_bundle() -> None:
    """A profile may have no standards."""
    assert StandardsProviderFactory.create("yaml-rules").create_bundle({}) == ""
