"""The use cases every surface calls, one module each, over an open `Project`."""
