"""Dispatchers: what brings runs to workers that would otherwise only look into the store."""
