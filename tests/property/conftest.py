"""Hypothesis settings: a number of examples and no deadline, which a busy machine could miss."""

from hypothesis import settings

settings.register_profile("signoff", deadline=None, print_blob=True)
settings.load_profile("signoff")
