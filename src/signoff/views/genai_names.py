"""The names of the GenAI semantic conventions that traces use, pinned in a table of our own.

The conventions are in development and have moved to a repository of their own; the constants of
the OpenTelemetry package are marked as deprecated. A test checks this table against a copy of the
registry's names. Names that begin with `signoff.` are ours: there is no standard for them.
"""

from __future__ import annotations

from collections.abc import Mapping

VERSION = "semantic-conventions-genai 002c8a6e"
"""The commit of open-telemetry/semantic-conventions-genai that the names are from."""

OPERATION = "gen_ai.operation.name"
WORKFLOW = "gen_ai.workflow.name"
AGENT = "gen_ai.agent.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
CONVERSATION = "gen_ai.conversation.id"
SYSTEM_INSTRUCTIONS = "gen_ai.system_instructions"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
ERROR_TYPE = "error.type"

USAGE: Mapping[str, str] = {
    "tokens_in": "gen_ai.usage.input_tokens",
    "tokens_out": "gen_ai.usage.output_tokens",
    "tokens_cached": "gen_ai.usage.cache_read.input_tokens",
    "tokens_cache_write": "gen_ai.usage.cache_creation.input_tokens",
    "tokens_reasoning": "gen_ai.usage.reasoning.output_tokens",
}
"""By the fields of `Usage`."""


CHAT = "chat"
INVOKE_AGENT = "invoke_agent"
INVOKE_WORKFLOW = "invoke_workflow"

COST = "signoff.cost.usd"
"""The known cost; there is no standard."""
UNKNOWN_COST = "signoff.cost.unknown_calls"
RUN = "signoff.run"
STATUS = "signoff.status"
ROUND = "signoff.round"
STEP = "signoff.step"
TIMES = "signoff.step.times"
OUTCOME = "signoff.outcome"
ATTEMPTS = "signoff.attempts"
EFFECT = "signoff.effect.id"
KIND = "signoff.effect.kind"
RESULT = "signoff.effect.result"
TRY = "signoff.effect.try"
PROGRAM = "signoff.program"
