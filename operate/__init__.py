"""Looks after a table and a deployment from outside: verify, rebuild, import, remove, publish."""
