"""The run directory: a readable projection of the journal, and the door for answers by file."""

from signoff.store.rundir.answers import FileAnswer, FileAnswers
from signoff.store.rundir.directory import RunDirectory
from signoff.store.rundir.files import RunFiles
from signoff.store.rundir.layout import AgentCall, Layout, Made, Shown
from signoff.store.rundir.projection import Projection

__all__ = [
    "AgentCall",
    "FileAnswer",
    "FileAnswers",
    "Layout",
    "Made",
    "Projection",
    "RunDirectory",
    "RunFiles",
    "Shown",
]
