"""The run directory: a readable projection of the journal, and how humans answer by file."""

from signoff.store.rundir.answers import FileAnswer, FileAnswers
from signoff.store.rundir.directory import RunDirectory
from signoff.store.rundir.files import RunFiles
from signoff.store.rundir.layout import AgentCall, FinishedStep, Layout, StepView
from signoff.store.rundir.projection import Projection

__all__ = [
    "AgentCall",
    "FileAnswer",
    "FileAnswers",
    "FinishedStep",
    "Layout",
    "Projection",
    "RunDirectory",
    "RunFiles",
    "StepView",
]
