"""Reviews: the pure half (`pure`), flow files and their steps (`flow`)."""
