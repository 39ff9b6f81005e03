"""The profiles that come with signoff."""
