"""The store for teams: runs in a schema of a PostgreSQL database."""
