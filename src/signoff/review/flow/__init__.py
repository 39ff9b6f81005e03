"""Review flows: a YAML file becomes a workflow of critics, judges and refining steps."""
