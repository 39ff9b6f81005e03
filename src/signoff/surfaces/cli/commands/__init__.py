"""The sub-commands, each module imported when it is used."""
