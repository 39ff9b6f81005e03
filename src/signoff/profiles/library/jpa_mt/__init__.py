"""The profile `jpa-mt`: multi-tenant JPA entities and repositories from a table definition."""
