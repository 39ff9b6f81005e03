"""The artifacts: twenty texts and twenty code files with planted defects.

A template marks each passage that can be defective as `«SEVERITY constraint¦bad¦good¦finding»`.
An artifact is a template filled in for one theme, with three to eight of its marked passages
left bad and the rest good.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

FOLDER = Path(__file__).parent / "templates"
TEXTS = ("release_notes", "readme", "howto", "story", "slogans")
CODE = ("billing", "handlers", "client", "cart", "report")

FEWEST, MOST = 3, 8
"""How many defects an artifact has."""

THEMES: tuple[dict[str, str], ...] = (
    {"name": "Larder", "thing": "recipe", "things": "recipes", "major": "3", "rate": "19"},
    {"name": "Fieldbook", "thing": "note", "things": "notes", "major": "2", "rate": "20"},
    {"name": "Depot", "thing": "parcel", "things": "parcels", "major": "5", "rate": "25"},
    {"name": "Roster", "thing": "shift", "things": "shifts", "major": "4", "rate": "21"},
)

CONSTRAINTS = {
    "text": {
        "accuracy": "Every statement is true, and following it does no harm.",
        "clarity": "Every sentence can be understood at the first reading.",
        "consistency": "No two statements contradict each other.",
        "tone": "The text is friendly, factual and free of advertising.",
    },
    "code": {
        "correctness": "Every function does what its name and its comment say.",
        "security": "No input from outside can run code, leave its place or reveal secrets.",
        "errors": "Invalid input and failures are reported, never ignored.",
        "readability": "Names and expressions are as simple as what they express.",
    },
}

_MARK = re.compile(r"«(?P<severity>[A-Z]+) (?P<constraint>\w+)¦(?P<rest>[^»]*)»")
_SHORTEST_PASSAGE = 30


@dataclass(frozen=True)
class Defect:
    """A bad passage of an artifact, and what should be there."""

    ref: str
    """Its name, unique among all defects of the artifact."""
    constraint: str
    severity: str
    bad: str
    good: str
    finding: str
    planted: bool = True
    """Whether it was there from the start; otherwise a fix introduced it."""


@dataclass(frozen=True)
class Artifact:
    """A text or a code file with its planted defects."""

    name: str
    kind: str
    """`text` or `code`."""
    goal: str
    text: str
    defects: tuple[Defect, ...]
    clean: tuple[str, ...]
    """Passages without any defect, each on a line of its own and each unique."""

    @property
    def constraints(self) -> dict[str, str]:
        """The constraints it is reviewed against, each with its summary."""
        return CONSTRAINTS[self.kind]


def artifacts(seed: int) -> list[Artifact]:
    """Returns all forty artifacts: twenty texts, then twenty code files."""
    kinds = [("text", name) for name in TEXTS] + [("code", name) for name in CODE]
    return [
        _artifact(kind, name, theme, Random(f"{seed}/{name}/{theme['name']}"))
        for kind, name in kinds
        for theme in THEMES
    ]


def _artifact(kind: str, name: str, theme: dict[str, str], random: Random) -> Artifact:
    template = _filled_in(name, theme)
    marks = list(_MARK.finditer(template))
    chosen = set(random.sample(range(len(marks)), random.randint(FEWEST, min(MOST, len(marks)))))
    defects: list[Defect] = []
    parts, end = [], 0
    for index, mark in enumerate(marks):
        bad, good, finding = mark["rest"].split("¦")
        parts += [template[end : mark.start()], bad if index in chosen else good]
        end = mark.end()
        if index in chosen:
            ref = f"d{index + 1}"
            defects.append(Defect(ref, mark["constraint"], mark["severity"], bad, good, finding))
    text = "".join([*parts, template[end:]])
    for defect in defects:
        assert text.count(defect.bad) == 1, f"{name}: {defect.bad!r} is not unique"
        assert defect.bad not in defect.good, f"{name}: {defect.good!r} contains the defect"
    title = f"{name}-{theme['name'].lower()}"
    goal = f"The {name.replace('_', ' ')} of {theme['name']}, ready to be published."
    return Artifact(title, kind, goal, text, tuple(defects), _clean_passages(template, text))


def _filled_in(name: str, theme: dict[str, str]) -> str:
    text = _template(name)
    for key, value in {**theme, "cmd": theme["name"].lower()}.items():
        text = text.replace(f"%{key}%", value)
    return text


@cache
def _template(name: str) -> str:
    (path,) = FOLDER.glob(f"{name}.*")
    return path.read_text(encoding="utf-8")


def _clean_passages(template: str, text: str) -> tuple[str, ...]:
    """Returns the lines outside all marked passages that are long enough to be quoted."""
    outside = _MARK.sub("«»", template).splitlines()
    lines = [line.strip() for line in outside if "«" not in line]
    return tuple(x for x in lines if len(x) >= _SHORTEST_PASSAGE and text.count(x) == 1)
