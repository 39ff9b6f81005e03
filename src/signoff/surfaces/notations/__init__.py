"""Commands of the notations that ship with signoff."""
