"""The guarded database: checked statements, staged steps, backups and migrations.

It knows nothing of workflows. `client` is for code that reads and changes the database and for
steps, `upkeep` for administrators. Nothing is imported here.
"""
