"""What the four kinds of step do."""
