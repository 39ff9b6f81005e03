"""Passkeys that sign approvals: the keys, what they sign, and how a signature is checked.

Only `presence` imports the package `webauthn`, which is the extra `passkeys`.
"""
