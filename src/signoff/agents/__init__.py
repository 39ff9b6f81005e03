"""Agents: coding programs, models over HTTP, a local model, checks, scripts and humans."""
