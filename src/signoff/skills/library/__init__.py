"""The skills that are shipped; each module assigns one `WORKFLOW`."""
