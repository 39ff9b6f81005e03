"""Turns a checklist into a workflow: a step for each item, an approval in each step."""

from dataclasses import dataclass

from signoff import Approval, End, Outcome, StepDef, Workflow
from signoff.errors import InvalidWorkflow, Problem, UnknownName
from signoff_checklist.settings import ChecklistSection

NAMED = {
    "release": ["The changelog is up to date.", "The tests are green."],
    "travel": ["The passport is valid."],
}
"""Checklists that come with the package, for targets such as `checklist:travel`."""


def compile_file(file, context):
    """Compiles a YAML file with a `checklist:`."""
    problems = []
    document = file.mapping(problems, "items of a checklist", 1)
    items = document.content.get("checklist") if document is not None else None
    if document is not None and not (isinstance(items, list) and items):
        where = document.at(("checklist",))
        problems.append(
            Problem(where, "checklist is not a list of items", "- The tests are green.")
        )
    if problems:
        raise InvalidWorkflow(file.name, problems)
    return workflow(file.path.stem, items, context)


def compile_named(name, context):
    """Compiles a checklist of this package."""
    if name not in NAMED:
        raise UnknownName("checklist", name, NAMED)
    return workflow(name, NAMED[name], context)


def workflow(name, items, context):
    """Returns the graph. The options are stored with each run, so a resume has them too."""
    greeting = ChecklistSection(**context.settings.get("checklists", {})).greeting
    owner = context.options.get("owner", "everyone")
    ids = [f"item-{number}" for number in range(1, len(items) + 1)]
    steps = [
        StepDef(
            step, handler=Check(f"{greeting}, {owner}: {item}"),
            next={Outcome.OK: following, Outcome.FAIL: End.REJECTED},
        )
        for step, item, following in zip(ids, items, [*ids[1:], None], strict=True)
    ]  # fmt: skip
    # Approvals decide; nothing else can be given, so no parameter is accepted.
    return Workflow(name, *steps, notation="checklist", inputs=())


@dataclass(frozen=True)
class Check:
    """The handler of one item."""

    text: str

    @property
    def definition(self):
        """What a run depends on."""
        return self.text

    async def __call__(self, ctx):
        answer = await ctx.wait(Approval(self.text))
        return (Outcome.OK if answer.value else Outcome.FAIL), {}
