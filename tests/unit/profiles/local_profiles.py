"""Sources of small profiles, for tests that find and load them."""

METHODS = "\n".join(
    f"    def {name}(self, context):\n        return '{name}'\n"
    for name in (
        "generate_planning_prompt",
        "generate_generation_prompt",
        "generate_review_prompt",
        "generate_revision_prompt",
        "get_standards_config",
    )
) + "\n".join(
    f"    def {name}(self, content):\n        return None\n"
    for name in (
        "process_planning_response",
        "process_generation_response",
        "process_review_response",
        "process_revision_response",
    )
)


def profile_source(
    name: str = "'greeting'", *, first: str = "", methods: str = METHODS, tail: str = ""
) -> str:
    """Returns the source of a profile; `name` is the expression of its metadata's name."""
    return f'''"""A profile."""

from signoff.profiles import WorkflowProfile

{first}

class Greeting(WorkflowProfile):
    """Greets."""

    @classmethod
    def get_metadata(cls):
        return {{"name": {name}, "description": "greets someone", "context_schema": {{}}}}

{methods}

def register(cli_group):
    {tail or "pass"}
    return Greeting
'''
