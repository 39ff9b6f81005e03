"""A project and its settings: agents, observers, presets, checks and trust."""
