"""Kills workers and servers at random while runs are driven, and checks that nothing is lost.

`python -m benchmarks.soak` starts a real PostgreSQL server, four real workers and, on request, a
real Temporal server.
"""
