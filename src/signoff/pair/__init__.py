"""Writer-reviewer pairs: one call that writes a short text until its reviewers pass it.

`pair` is the general form, `run_slogan_generation` the one for slogans. Each call is a run of one
workflow: recorded, resumable and listed like any other. Names are loaded when they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from signoff._lazy import exported_names

if TYPE_CHECKING:
    from signoff.pair.agents import OllamaAgent as OllamaAgent
    from signoff.pair.agents import create_reviewer_agent as create_reviewer_agent
    from signoff.pair.agents import create_writer_agent as create_writer_agent
    from signoff.pair.agents import get_cached_agent as get_cached_agent
    from signoff.pair.call import pair as pair
    from signoff.pair.call import resume_pair as resume_pair
    from signoff.pair.call import run_slogan_generation as run_slogan_generation
    from signoff.pair.call import (
        run_slogan_generation_with_retry as run_slogan_generation_with_retry,
    )
    from signoff.pair.config import DEFAULT_MAX_TOKENS as DEFAULT_MAX_TOKENS
    from signoff.pair.config import DEFAULT_MAX_TURNS as DEFAULT_MAX_TURNS
    from signoff.pair.config import DEFAULT_MODEL_NAME as DEFAULT_MODEL_NAME
    from signoff.pair.config import DEFAULT_OLLAMA_BASE_URL as DEFAULT_OLLAMA_BASE_URL
    from signoff.pair.config import DEFAULT_REQUEST_TIMEOUT as DEFAULT_REQUEST_TIMEOUT
    from signoff.pair.config import DEFAULT_TEMPERATURE as DEFAULT_TEMPERATURE
    from signoff.pair.config import OllamaConfig as OllamaConfig
    from signoff.pair.config import get_ollama_config as get_ollama_config
    from signoff.pair.session import AgentError as AgentError
    from signoff.pair.session import AgentRole as AgentRole
    from signoff.pair.session import ApprovalTimeoutError as ApprovalTimeoutError
    from signoff.pair.session import CompletionReason as CompletionReason
    from signoff.pair.session import ConfigurationError as ConfigurationError
    from signoff.pair.session import IterationSession as IterationSession
    from signoff.pair.session import ModelNotFoundError as ModelNotFoundError
    from signoff.pair.session import Review as Review
    from signoff.pair.session import Turn as Turn
    from signoff.pair.session import WorkflowError as WorkflowError
    from signoff.pair.session import should_stop_early as should_stop_early
    from signoff.pair.workflow import should_continue_iteration as should_continue_iteration
    from signoff.review.pure.reviewer_verdict import is_approved as is_approved
    from signoff.review.pure.similarity import calculate_similarity as calculate_similarity

__all__, __getattr__, __dir__ = exported_names(__name__)
