"""Generates the schemas from the models that read the files, so that editor and program agree."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel

from signoff.documents.sections import schema_text
from signoff.review.flow.reading import FlowFile, GenloopFile, GoalFile
from signoff.review.flow.sections import ConstraintFile

_MODELS: Mapping[str, tuple[type[BaseModel], str]] = {
    "flow.schema.json": (FlowFile, "signoff flow"),
    "genloop.schema.json": (GenloopFile, "signoff flow without its own steps"),
    "constraint.schema.json": (ConstraintFile, "signoff constraint"),
    "goal.schema.json": (GoalFile, "signoff goal"),
}


def schemas() -> dict[str, str]:
    """Returns the text of every schema by the name of its file."""
    return {name: schema_text(model, title) for name, (model, title) in _MODELS.items()}


if __name__ == "__main__":
    for name, text in schemas().items():
        (Path(__file__).parent / name).write_text(text, "utf-8")
