"""The administration commands of ``python -m local.admin`` and ``python -m operate.…``. Most work
on a table or a deployment without its API functions: verify, rebuild, import, remove, publish,
deploy."""
