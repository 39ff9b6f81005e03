"""The user's own database, guarded: judged statements, staged steps, backups and migrations.

Nothing is imported here; `signoff.contracts.db.client` is the door for steps and
`signoff.contracts.db.upkeep` the one for the people who look after the database.
"""
