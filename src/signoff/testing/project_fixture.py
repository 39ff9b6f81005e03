"""A project for one test, isolated from the settings of the machine, in one folder."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from signoff.app.people.answering import AnswerInput, find_item, record_answer
from signoff.app.settings.home import Home, init_home
from signoff.app.settings.project import Project, open_project
from signoff.core.spend import Limits
from signoff.core.workflow import Workflow
from signoff.runtime.engine import Engine
from signoff.runtime.ports import Agent
from signoff.runtime.result import RunResult
from signoff.runtime.store_port import InboxItem


class ProjectFixture:
    """Starts, answers and resumes runs the way a user would."""

    def __init__(self, folder: Path) -> None:
        """Creates the project in `folder`."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.agents: dict[str, Agent] = {}
        """Agents by name; they override the settings in `home.config`."""
        # The settings of a developer's machine must not decide whether a test passes.
        self._environment = {"XDG_CONFIG_HOME": str(folder / "no-user-settings")}
        self.home: Home = init_home(folder, self._environment).home

    def run(
        self,
        workflow: Workflow,
        params: Mapping[str, Any] | None = None,
        *,
        limits: Limits | None = None,
        **agents: Agent,
    ) -> RunResult:
        """Starts the run `test` and drives it to its end or its next wait."""
        self.agents.update(agents)
        return self._drive(
            lambda engine: engine.start(workflow, params, name="test", limits=limits)
        )

    def resume(self, workflow: Workflow, *, switch: Mapping[str, str] | None = None) -> RunResult:
        """Resumes the run, as another process would."""
        return self._drive(lambda engine: engine.resume("test", workflow, switch=switch))

    def answer(self, value: Any, *, text: str = "", number: int | None = None) -> InboxItem:
        """Answers the only open request, or the one with that number."""
        with self.project() as project:
            item = find_item(project) if number is None else project.store.item(number)
            return record_answer(project, item.id, AnswerInput(value, text, by="test"))

    @property
    def inbox(self) -> list[InboxItem]:
        """The open requests."""
        with self.project() as project:
            return project.store.items()

    def project(self) -> Project:
        """Opens the project; use it as a context manager."""
        return open_project(self.folder, self._environment, agents=self.agents)

    def _drive(self, operation: Callable[[Engine], Awaitable[RunResult]]) -> RunResult:
        async def drive() -> RunResult:
            with self.project() as project:
                async with project.engine() as engine:
                    return await operation(engine)

        return asyncio.run(drive())
