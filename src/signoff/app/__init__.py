"""The use cases every surface calls: start, resume, answer, approve, cancel, list, show."""
