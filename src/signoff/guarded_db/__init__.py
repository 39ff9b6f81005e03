"""The guarded database: checked statements, staged steps, backups and migrations.

It knows nothing of workflows. `signoff.guarded_db.client` is for code that reads and changes
the database, `signoff.guarded_db.client` for steps, `signoff.guarded_db.upkeep` for
administrators. Nothing is imported here.
"""
