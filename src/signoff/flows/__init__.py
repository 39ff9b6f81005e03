"""Review flows: generate, critique, adjudicate and refine steps in YAML, compiled to a graph."""
