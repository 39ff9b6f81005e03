"""Review as data: constraints, critiques, findings with identity, policy, adjudication."""

from signoff.review.pure.similarity import same_claim

__all__ = ["same_claim"]
