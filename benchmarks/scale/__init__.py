"""How many workers and runs a database carries: a simulation, and real workers to check it."""
