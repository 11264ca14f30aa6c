"""``python -m local.admin export``: copies data into the database of MLflow's own server."""
