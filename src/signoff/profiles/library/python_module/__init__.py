"""The profile `python-module`: a Python module with its tests from a description."""
