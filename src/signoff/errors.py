"""The errors of signoff: a tree, by who has to act. See `signoff.core.errors`."""

from signoff.core.errors import *  # noqa: F403 - the public path of the tree
