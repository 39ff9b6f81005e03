"""Review as data: constraints, critiques, findings with identity, policy, adjudication."""
