"""Doubles and suites for tests of workflows, stores and agents."""
