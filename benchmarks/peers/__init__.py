"""The same works done by other engines, each in an environment of its own."""
