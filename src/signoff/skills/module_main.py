"""Lets a skill run as a program: `python -m package.module --step 2`.

Python runs such a module under the name `__main__`. Finding the skill by its name would import the
module again, and every object in it would exist twice. So the running module is registered under
the name by which it would be imported.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from signoff.core.workflow import Workflow
from signoff.discovery import NAME
from signoff.documents.python_files import module_name
from signoff.skills.commands.step import run_step


def main(workflow: Workflow, arguments: Sequence[str] | None = None) -> NoReturn:
    """Shows a step of the skill that is defined in the running module, and exits.

    Put this at the end of the module:

        if __name__ == "__main__":
            main(WORKFLOW)
    """
    module = sys.modules["__main__"]
    file = Path(module.__file__ or "").resolve()
    spec = module.__spec__
    name = spec.name if spec is not None else module_name(file)
    # Sub-agents' handlers and the skill that discovery finds must be the same objects; a second
    # import would run the module's code again and compare unequal.
    sys.modules.setdefault(name, module)
    # Without a spec the module was started by its path, and only the path leads to it from a
    # printed command.
    target = f"{name}:{NAME}" if spec is not None else str(file)
    sys.exit(run_step(workflow, target, file, sys.argv[1:] if arguments is None else arguments))
