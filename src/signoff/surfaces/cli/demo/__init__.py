"""The demo: a flow for a small model, its goal, its constraints, and the checks that review."""
