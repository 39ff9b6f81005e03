"""What this engine costs, compared with the raw SQLite floor and with other engines.

`python -m benchmarks` compares with the floor, `python -m benchmarks.peers` with other
engines. Every sample is taken in a process of its own, contestants take turns, and only
figures of one and the same run are compared.
"""
