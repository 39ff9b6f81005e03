"""The demonstration: a flow for a small model, its goal, its constraints, and checks that judge."""
