"""Lets the module of a skill show its own steps when Python runs it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from signoff.core.workflow import Workflow
from signoff.documents.discovery import NAME
from signoff.documents.python_files import module_name

COMMANDS = "signoff.surfaces.notations.skills"
"""Where the commands of skills are. They are a surface, so nothing here imports them: like the
notation, a program reaches them by name."""


def main(workflow: Workflow, arguments: Sequence[str] | None = None) -> NoReturn:
    """Shows a step of the skill that is defined in the running module, and exits.

    Put this at the end of the module, to run it as `python -m package.module --step 2`:

        if __name__ == "__main__":
            main(WORKFLOW)
    """
    # Python runs such a module under the name `__main__`. Finding the skill by its name would
    # import it again, and every object in it would exist twice. So the running module is registered
    # under the name by which it would be imported.
    module = sys.modules["__main__"]
    file = Path(module.__file__ or "").resolve()
    spec = module.__spec__
    name = spec.name if spec is not None else module_name(file)
    sys.modules.setdefault(name, module)
    # Without a spec the module was started by its path, and only the path leads to it from a
    # printed command.
    target = f"{name}:{NAME}" if spec is not None else str(file)
    step = import_module(f"{COMMANDS}.step")
    words = sys.argv[1:] if arguments is None else arguments
    sys.exit(step.run_step(workflow, target, file, words))
