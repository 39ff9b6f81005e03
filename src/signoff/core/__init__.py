"""The pure part: graph, rules, events and their fold. No I/O, no clock, no chance, no async."""
