"""A measured review loop: what it costs until approval, and which defects it leaves.

Forty artifacts with planted defects go through a naive loop and through the installed signoff,
with the same simulated critics, judge and fixer. No model is called.
"""
