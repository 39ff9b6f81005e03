from typing import Annotated, Any, Literal

import pytest
from pydantic import Discriminator, Field, Tag, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from signoff.documents.mistakes import ADVICE, Mistake, format_path, mistakes_of
from signoff.documents.sections import Section


class Cat(Section):
    kind: Literal["cat"]
    lives: int = Field(9, description="a number of lives")


class Dog(Section):
    kind: Literal["dog"]
    tricks: list[str] = Field(default_factory=list, description="a list of tricks")


class Inner(Section):
    size: int = Field(description="a size")


class Zoo(Section):
    pets: list[Annotated[Cat | Dog, Field(discriminator="kind", description="a pet")]] = Field(
        default_factory=list, description="a list of pets"
    )
    by_name: dict[str, Inner] = Field(default_factory=dict, description="sizes by name")
    either: (
        Annotated[
            Annotated[str, Tag("text")] | Annotated[Inner, Tag("mapping")],
            Discriminator(lambda raw: "mapping" if isinstance(raw, dict) else "text"),
        ]
        | None
    ) = Field(None, description="a text or a mapping")
    name: str = Field("", description="a name")

    @field_validator("name")
    @classmethod
    def _not_taken(cls, value: str) -> str:
        if value == "taken":
            raise PydanticCustomError(ADVICE, "choose another name")
        return value


def mistakes(raw: dict[str, Any]) -> list[Mistake]:
    with pytest.raises(ValidationError) as caught:
        Zoo.model_validate(raw, strict=True)
    return mistakes_of(caught.value, Zoo)


@pytest.mark.parametrize(
    ("raw", "path", "what", "remedy"),
    [
        (
            {"nmae": 1},
            ("nmae",),
            "unknown key 'nmae'",
            "did you mean 'name'? valid: pets, by_name, either, name",
        ),
        ({"name": 1}, ("name",), "name is 1", "a name"),
        ({"name": "taken"}, ("name",), "name is 'taken'", "choose another name"),
        ({"pets": 3}, ("pets",), "pets is 3", "a list of pets"),
        ({"pets": ["x"]}, ("pets", 0), "pets[0] is 'x'", "a pet"),
        ({"pets": [{}]}, ("pets", 0, "kind"), "pets[0].kind is missing", "one of: cat, dog"),
        (
            {"pets": [{"kind": "cow"}]},
            ("pets", 0, "kind"),
            "pets[0].kind is 'cow'",
            "one of: cat, dog",
        ),
        (
            {"pets": [{"kind": "cat", "lives": "9"}]},
            ("pets", 0, "lives"),
            "pets[0].lives is '9'",
            "a number of lives",
        ),
        (
            {"pets": [{"kind": "dog", "lives": 1}]},
            ("pets", 0, "lives"),
            "unknown key 'lives'",
            "valid: kind, tricks",
        ),
        ({"by_name": {"a": {}}}, ("by_name", "a", "size"), "by_name.a.size is missing", "a size"),
        ({"either": {}}, ("either", "size"), "either.size is missing", "a size"),
        ({"either": 3}, ("either",), "either is 3", "a text or a mapping"),
    ],
)
def test_a_mistake_names_its_location_and_what_is_valid_there(
    raw: dict[str, Any], path: tuple[str | int, ...], what: str, remedy: str
) -> None:
    """The author of the file must be able to fix it without the documentation."""
    assert mistakes(raw) == [Mistake(path, what, remedy)]


def test_a_long_value_is_cut() -> None:
    """An error message is one line, whatever was pasted into the file."""
    (mistake,) = mistakes({"by_name": "x" * 1000})

    assert len(mistake.what) < 80


def test_a_path_is_formatted_as_users_write_it() -> None:
    """`workflow.1.execution` would need an explanation."""
    assert format_path(("workflow", 1, "execution")) == "workflow[1].execution"
    assert format_path(()) == ""
