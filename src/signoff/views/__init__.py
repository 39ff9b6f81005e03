"""What a run looks like: one timeline, and everything that is rendered from it."""
