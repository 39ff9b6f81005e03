"""Where skills get conventions, files, resources, workflows and guidance from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from signoff.core.errors import InvalidWorkflow, UnknownName, UnsafePath
from signoff.core.workflow import Workflow
from signoff.documents.discovery import discover_files, python_files
from signoff.documents.regular_files import read_regular
from signoff.runtime.paths import safe_path
from signoff.store.run_files import Disk

CONVENTIONS = "conventions"
RESOURCES = "resources"
WORKFLOWS = "workflows"


class ResourceProvider(Protocol):
    """The five kinds of things that a skill may look up."""

    def get_convention(self, name: str) -> str:
        """Returns the text of a convention; raises `FileNotFoundError` if it is missing."""

    def read_file(self, path: str) -> str:
        """Returns the text of a file; raises `FileNotFoundError` if it is missing."""

    def write_file(self, path: str, text: str) -> None:
        """Writes a file as a whole."""

    def get_resource(self, name: str) -> str:
        """Returns the text of a resource; raises `FileNotFoundError` if it is missing."""

    def get_workflow(self, name: str) -> Workflow:
        """Returns a workflow by its name."""

    def get_step_guidance(self, workflow: str, step: str, **params: Any) -> Mapping[str, Any]:
        """Returns the title and the actions of a step."""


@dataclass(frozen=True)
class FileResourceProvider:
    """Everything in one folder: `conventions/`, `resources/`, `workflows/` and other files."""

    root: Path | str

    def get_convention(self, name: str) -> str:
        """Returns the text of `conventions/NAME`, with or without `.md`."""
        return self._named(CONVENTIONS, name)

    def read_file(self, path: str) -> str:
        """Returns the text of a file below the root."""
        return read_regular(self._path(path), None).decode()

    def write_file(self, path: str, text: str) -> None:
        """Writes a file below the root as a whole, and creates its folders."""
        # Written beside the file and renamed, so a reader never sees half of it.
        Disk(self._root).put(self._path(path), text.encode())

    def get_resource(self, name: str) -> str:
        """Returns the text of `resources/NAME`, with or without `.md`."""
        return self._named(RESOURCES, name)

    def get_workflow(self, name: str) -> Workflow:
        """Returns a workflow of `workflows/` by its name."""
        found = discover_files(python_files(self._path(WORKFLOWS)))
        if found.problems:
            raise InvalidWorkflow(WORKFLOWS, found.problems)
        workflows = {each.workflow.name: each.workflow for each in found.found}
        if name not in workflows:
            raise UnknownName("workflow", name, found.names)
        return workflows[name]

    def get_step_guidance(self, workflow: str, step: str, **params: Any) -> Mapping[str, Any]:
        """Returns the title and the actions of a step, evaluated with its parameters."""
        output = self.get_workflow(workflow).run(step, **params)
        return {"step": output.step, "title": output.title, "actions": output.actions}

    @property
    def _root(self) -> Path:
        return Path(self.root)

    def _named(self, folder: str, name: str) -> str:
        path = self._path(f"{folder}/{name}")
        if not path.exists():
            path = self._path(f"{folder}/{name}.md")
        return read_regular(path, None).decode()

    def _path(self, relative: str) -> Path:
        """Returns the path of a file; raises `UnsafePath` for one that leaves the root."""
        if not isinstance(relative, str):
            raise UnsafePath(f"a path must be text, not {type(relative).__name__}")
        # Names come from models, so a path that leaves the folder, even through a link, is refused
        # before anything is opened.
        return safe_path(self._root, relative)
