"""One module per sub-command, each imported when it is used."""
