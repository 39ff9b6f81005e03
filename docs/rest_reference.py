"""Writes the reference of the REST interface from its description."""  # noqa: INP001  # part of the script next to it

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import FastAPI

from signoff.surfaces.web.api import routes
from signoff.surfaces.web.api.routes import describe


def rest_operations() -> Iterator[str]:
    """Yields every operation, by tag."""
    document = _description()
    for tag in document["tags"]:
        yield from (f"### {tag['name'].capitalize()}", "", tag["description"], "")
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                if tag["name"] in operation["tags"]:
                    yield from _operation(f"{method.upper()} {path}", operation)


def rest_documents() -> Iterator[str]:
    """Yields every document, with its fields."""
    for name, schema in sorted(_description()["components"]["schemas"].items()):
        # The first paragraph: what follows is for readers of the code.
        about, _, _ = schema.get("description", "").partition("\n\n")
        yield from (f"### {name}", "", *about.splitlines(), "")
        if "enum" in schema:
            yield from (f"One of {', '.join(f'`{each}`' for each in schema['enum'])}.", "")
            continue
        required = schema.get("required", ())
        rows = [
            f"| `{field}` | {_type(value)} | {_cell(_about(value, needed=field in required))} |"
            for field, value in schema["properties"].items()
        ]
        yield from ("| field | type | |", "| --- | --- | --- |", *rows, "")
        if schema.get("additionalProperties") is True:
            yield from ("There may be further fields, which depend on the kind of the run.", "")


def _description() -> dict[str, Any]:
    app = FastAPI()
    app.router.routes.extend(routes.router.routes)
    return describe(app)


def _operation(title: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"#### `{title}`", "", *operation["description"].splitlines(), "")
    rows = [
        f"| `{each['name']}` | {each['in']} | {_type(each['schema'])} "
        f"| {_cell(each.get('description', ''))} |"
        for each in operation.get("parameters", ())
    ]
    if rows:
        yield from ("| parameter | in | type | |", "| --- | --- | --- | --- |", *rows, "")
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body:
        yield from (f"Body: {_type(body['schema'])}", "")
    for status, answer in operation["responses"].items():
        if status != "default":
            yield from (f"{status}: {_answer(answer)}", "")


def _answer(answer: Mapping[str, Any]) -> str:
    kinds = answer.get("content", {})
    schema = kinds.get("application/json", {}).get("schema")
    return _type(schema) if schema else _cell(answer["description"])


def _type(schema: Mapping[str, Any]) -> str:
    """Returns a type in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(map(_type, schema["anyOf"]))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    values = schema.get("additionalProperties")
    if schema.get("type") == "object" and isinstance(values, Mapping) and values:
        return f"object of {_type(values)}"
    return str(schema.get("type", "any"))


def _about(schema: Mapping[str, Any], *, needed: bool) -> str:
    """Returns what a field means, and what holds if a request leaves it out."""
    words = [schema.get("description", "")]
    if not needed and "default" in schema:
        words.append(f"Default: {_value(schema['default'])}.")
    if examples := schema.get("examples"):
        words.append(f"Example: {_value(examples[0])}.")
    return " ".join(filter(None, words))


def _value(value: Any) -> str:
    return f"`{json.dumps(value)}`"


def _cell(text: str) -> str:
    return text.replace("|", r"\|")
