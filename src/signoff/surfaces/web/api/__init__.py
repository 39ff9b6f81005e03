"""The REST interface: the use cases as resources, under `/api/v1`."""
