"""Review as data: constraints, critiques, findings with identity, policy, adjudication."""

from signoff.review.similarity import same_claim

__all__ = ["same_claim"]
