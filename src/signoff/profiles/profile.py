"""What the author of a profile implements, and a base class for prompts that are templates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from signoff.core.errors import InvalidParams, Problem
from signoff.documents import templates
from signoff.profiles.code_files import find_code_files
from signoff.profiles.model import ProcessingResult, WriteOp, WritePlan
from signoff.profiles.transitions import WorkflowStatus


class WorkflowProfile(ABC):
    """Prompts for one domain, and what the responses to them contain.

    A profile gets strings and mappings and returns strings and `ProcessingResult`s. It never
    reads or writes files, calls a provider or decides what follows: the engine does. Prompts also
    get the number of the round, as `iteration` in their context.
    """

    can_regenerate_prompts: bool = False
    """Whether a rejected prompt is created again, with the approver's feedback in the context."""

    options: Mapping[str, Any] = MappingProxyType({})
    """The values of the profile's `options`, from the settings in `profiles.options`."""

    @classmethod
    @abstractmethod
    def get_metadata(cls) -> Mapping[str, Any]:
        """Returns the profile's `name`, `description` and `context_schema`.

        The schema maps the name of each field of the context to `type` (string, int, bool or
        path), `required`, `choices`, `exists`, `default` and `description`, all optional. A
        schema of the same form in `options` declares what the settings can set for all sessions.
        """

    @abstractmethod
    def get_standards_config(self, context: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the configuration of the standards provider; empty for no standards."""

    @abstractmethod
    def generate_planning_prompt(self, context: Mapping[str, Any]) -> str:
        """Returns the prompt that asks for a plan."""

    @abstractmethod
    def generate_generation_prompt(self, context: Mapping[str, Any]) -> str:
        """Returns the prompt that asks for the code of the approved plan."""

    @abstractmethod
    def generate_review_prompt(self, context: Mapping[str, Any]) -> str:
        """Returns the prompt that asks for a review of the code."""

    @abstractmethod
    def generate_revision_prompt(self, context: Mapping[str, Any]) -> str:
        """Returns the prompt that asks to fix what the review found."""

    @abstractmethod
    def process_planning_response(self, content: str) -> ProcessingResult:
        """Reads a plan."""

    @abstractmethod
    def process_generation_response(self, content: str) -> ProcessingResult:
        """Reads the generated code; its files go into the write plan."""

    @abstractmethod
    def process_review_response(self, content: str) -> ProcessingResult:
        """Reads a review; `metadata["verdict"]` replaces the verdict of `@@@REVIEW_META`."""

    @abstractmethod
    def process_revision_response(self, content: str) -> ProcessingResult:
        """Reads the revised code; its files go into the write plan."""


# A base class for profiles whose prompts are template files.
#
# It covers the usual case: four templates, responses that contain files in fenced blocks, and
# reviews that end with `@@@REVIEW_META`. A profile that extends it says what its templates are
# about and where they are.


ENGINE_VARIABLES = ("STANDARDS", "PLAN", "CODE", "REVIEW", "FEEDBACK")
"""The variables that only the engine has values for."""

FORMS = Path(__file__).with_name("forms")
"""What prompts say about the form of an answer; it has to match what is read from answers."""


def render_template(
    path: str | PathLike[str],
    variables: Mapping[str, Any],
    templates_root: str | PathLike[str] | None = None,
) -> str:
    """Renders a template like `signoff.documents.templates`; the engine's variables stay in it."""
    return templates.render_template(path, variables, templates_root, keep=ENGINE_VARIABLES)


def fill_engine_variables(prompt: str, values: Mapping[str, str]) -> str:
    """Returns a profile's prompt with the engine's variables filled in; empty without a value."""
    return templates.fill(prompt, {name: values.get(name, "") for name in ENGINE_VARIABLES})


class TemplateProfile(WorkflowProfile):
    """Prompts from the templates of a folder, and files from the responses to them.

    The folder has `planning-prompt.md`, `generation-prompt.md`, `review-prompt.md` and
    `revision-prompt.md`. Next to the variables of the profile, they may use `{{FILES_FORM}}`,
    `{{REVIEW_FORM}}` and `{{REVISION_FORM}}`: how to answer.
    """

    templates: ClassVar[Path]
    """The folder of the templates; nothing outside it can be included."""

    standards: ClassVar[Mapping[str, Any]] = {}
    """The configuration of the standards provider."""

    @abstractmethod
    def template_variables(self, context: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the variables of the templates."""

    def context_problems(self, context: Mapping[str, Any]) -> Mapping[str, str]:  # noqa: ARG002  # for subclasses
        """Returns what is wrong with a context, by field, beyond what its schema can say."""
        return {}

    def generation_problem(self, files: Mapping[str, str]) -> str:  # noqa: ARG002  # for subclasses
        """Returns what is wrong with the generated files, by path; empty if nothing is.

        A revision is not asked: it has only the files that change.
        """
        return ""

    def get_standards_config(self, context: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ARG002  # the same for every context
        """Returns `standards`; the provider itself takes the scope from the context."""
        return self.standards

    def generate_planning_prompt(self, context: Mapping[str, Any]) -> str:
        """Renders `planning-prompt.md`."""
        return self._render("planning", context)

    def generate_generation_prompt(self, context: Mapping[str, Any]) -> str:
        """Renders `generation-prompt.md`."""
        return self._render("generation", context)

    def generate_review_prompt(self, context: Mapping[str, Any]) -> str:
        """Renders `review-prompt.md`."""
        return self._render("review", context)

    def generate_revision_prompt(self, context: Mapping[str, Any]) -> str:
        """Renders `revision-prompt.md`."""
        return self._render("revision", context)

    def process_planning_response(self, content: str) -> ProcessingResult:
        """Accepts any plan that is not empty: whether it is good is for the gate to decide."""
        if not content.strip():
            return _unusable("the plan is empty")
        return _usable()

    def process_generation_response(self, content: str) -> ProcessingResult:
        """Returns the files of a response."""
        return _files_of(content, self.generation_problem)

    def process_review_response(self, content: str) -> ProcessingResult:
        """Leaves the verdict to the engine, which reads `@@@REVIEW_META`."""
        if not content.strip():
            return _unusable("the review is empty")
        return _usable()

    def process_revision_response(self, content: str) -> ProcessingResult:
        """Returns the files of a response, `revision-issues.md` among them."""
        return _files_of(content)

    def _render(self, phase: str, context: Mapping[str, Any]) -> str:
        # Asked before each prompt, because the context of a session can be corrected when it is
        # resumed.
        problems = self.context_problems(context)
        if problems:
            raise InvalidParams(Problem(f"parameter {n!r}", what) for n, what in problems.items())
        forms = {
            f"{name.upper()}_FORM": render_template(FORMS / f"{name}.md", {}).rstrip("\n")
            for name in ("files", "review", "revision")
        }
        variables = {**forms, **self.template_variables(context)}
        return render_template(f"{phase}-prompt.md", variables, self.templates)


def _files_of(
    content: str, problem_with: Callable[[Mapping[str, str]], str] | None = None
) -> ProcessingResult:
    try:
        files = find_code_files(content)
    except ValueError as error:
        return _unusable(str(error))
    # What is wrong is returned and not raised: the session waits for a better response, and its
    # user reads why.
    problem = problem_with(files) if problem_with is not None else ""
    return _unusable(problem) if problem else _usable(files)


def _usable(files: Mapping[str, str] | None = None) -> ProcessingResult:
    plan = None
    if files is not None:
        plan = WritePlan(writes=[WriteOp(path=p, content=text) for p, text in files.items()])
    return ProcessingResult(status=WorkflowStatus.SUCCESS, write_plan=plan)


def _unusable(problem: str) -> ProcessingResult:
    return ProcessingResult(status=WorkflowStatus.ERROR, error_message=problem)
