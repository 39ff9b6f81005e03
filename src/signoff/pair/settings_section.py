"""Checks the `pair:` section of settings files."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from signoff.documents.mistakes import ADVICE
from signoff.documents.sections import Section
from signoff.pair.checks import parse_check
from signoff.pair.ollama_config import ModelName, Seconds, Temperature, Tokens, Turns, Url


def _check(rule: str) -> str:
    try:
        parse_check(rule)
    except ValueError as error:
        raise PydanticCustomError(ADVICE, "{why}", {"why": str(error)}) from error
    return rule


AgentName = Annotated[str, Field(min_length=1, description="the name of an agent")]
Reviewers = Annotated[
    list[AgentName],
    Field(description="a list of agents, each AGENT or AGENT=SPECIALTY; [] for none"),
]
Verdict = Annotated[
    Literal["phrase", "structured"], Field(description="one of: phrase, structured")
]
Candidates = Annotated[int, Field(ge=1, description="a whole number from 1")]
Keep = Annotated[Literal["last", "best"], Field(description="one of: last, best")]
Similarity = Annotated[
    float, Field(ge=0, le=1, allow_inf_nan=False, description="a number from 0 to 1")
]
Strict = Annotated[bool, Field(description="true or false")]
Checks = Annotated[
    list[Annotated[str, AfterValidator(_check)]], Field(description="a list such as [words=8]")
]


class PairSection(Section):
    """What pairs use unless the environment or the call says otherwise."""

    model_config = ConfigDict(extra="forbid", defer_build=True, protected_namespaces=())

    writer: AgentName | None = None
    reviewers: Reviewers | None = None
    checks: Checks | None = None
    verdict: Verdict | None = None
    strict: Strict | None = None
    max_turns: Turns | None = None
    candidates: Candidates | None = None
    keep: Keep | None = None
    similarity: Similarity | None = None
    model_name: ModelName | None = None
    temperature: Temperature | None = None
    max_tokens: Tokens | None = None
    base_url: Url | None = None
    request_timeout: Seconds | None = None
