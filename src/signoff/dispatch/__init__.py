"""Dispatchers: what brings runs to workers, besides the store itself."""
