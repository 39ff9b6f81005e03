"""Where the REST interface is."""

API = "/api/v1"
