"""Passkeys that sign approvals; the package `webauthn`, the extra `passkeys`, checks signatures."""
