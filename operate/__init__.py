"""Commands that maintain a table or a deployment from outside: verify, rebuild, import, remove,
publish."""
