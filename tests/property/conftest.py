"""How hypothesis searches here: by examples, never by the clock of a busy machine."""

from hypothesis import settings

settings.register_profile("signoff", deadline=None, print_blob=True)
settings.load_profile("signoff")
