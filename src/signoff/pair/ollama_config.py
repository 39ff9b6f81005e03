"""The configuration of the Ollama server that pairs use, and the limits of its values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from signoff.agents.server import parse_base_url
from signoff.documents.mistakes import ADVICE
from signoff.errors import ConfigError

DEFAULT_MODEL_NAME = "mistral:latest"
DEFAULT_MAX_TURNS = 5
DEFAULT_TEMPERATURE = 0.7
DEFAULT_MAX_TOKENS = 100
DEFAULT_OLLAMA_BASE_URL = "http://localhost:11434"
DEFAULT_REQUEST_TIMEOUT = 30
"""Seconds."""

ENVIRONMENT: Mapping[str, str] = {
    "OLLAMA_MODEL_NAME": "model_name",
    "OLLAMA_MAX_TURNS": "max_turns",
    "OLLAMA_TEMPERATURE": "temperature",
    "OLLAMA_MAX_TOKENS": "max_tokens",
    "OLLAMA_BASE_URL": "base_url",
    "OLLAMA_REQUEST_TIMEOUT": "request_timeout",
}
"""Environment variables, and the value that each one sets."""


def _url(text: str) -> str:
    try:
        return parse_base_url(text)
    except ConfigError as error:
        raise PydanticCustomError(ADVICE, "{why}", {"why": str(error)}) from error


ModelName = Annotated[str, Field(min_length=1, description="the name of a model")]
Turns = Annotated[int, Field(ge=1, le=10, description="a whole number from 1 to 10")]
Temperature = Annotated[
    float, Field(ge=0, le=2, allow_inf_nan=False, description="a number from 0 to 2")
]
Tokens = Annotated[int, Field(ge=1, description="a whole number from 1")]
Url = Annotated[
    str, AfterValidator(_url), Field(description="a URL such as http://localhost:11434")
]
Seconds = Annotated[
    float, Field(ge=1, le=300, allow_inf_nan=False, description="seconds, from 1 to 300")
]


class OllamaConfig(BaseModel):
    """Which model of which server writes and reviews, and how."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True, protected_namespaces=())

    model_name: ModelName = DEFAULT_MODEL_NAME
    max_turns: Turns = DEFAULT_MAX_TURNS
    temperature: Temperature = DEFAULT_TEMPERATURE
    max_tokens: Tokens = DEFAULT_MAX_TOKENS
    base_url: Url = DEFAULT_OLLAMA_BASE_URL
    """With or without `/v1`."""
    request_timeout: Seconds = DEFAULT_REQUEST_TIMEOUT

    @property
    def options(self) -> dict[str, Any]:
        """The options of a request to the native chat API."""
        return {"temperature": self.temperature, "num_predict": self.max_tokens}
