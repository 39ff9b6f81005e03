"""The run directory: a readable projection of the journal, and how humans answer by file."""

from signoff.store.rundir.answers import FileAnswers
from signoff.store.rundir.directory import RunDirectory
from signoff.store.rundir.files import RunFiles
from signoff.store.rundir.layout import AgentCall, Layout
from signoff.store.rundir.projection import Projection

__all__ = ["AgentCall", "FileAnswers", "Layout", "Projection", "RunDirectory", "RunFiles"]
