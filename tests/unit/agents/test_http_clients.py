import subprocess
import sys

LIGHT = """
import sys
import signoff, signoff.plugins
from signoff.agents.anthropic import AnthropicModel
from signoff.agents.ollama import OllamaModel
from signoff.agents.openai import OpenAIModel
AnthropicModel(), OllamaModel(), OpenAIModel()
heavy = {"anthropic", "ollama", "openai", "httpx", "httpx2", "pydantic", "jsonschema"}
print(sorted(heavy & set(sys.modules)))
"""


def test_creating_an_agent_imports_no_client() -> None:
    """Clients take seconds to import, which would delay `signoff --help`."""
    result = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True)

    assert result.stdout.strip() == "[]", result.stderr
