"""``python -m local.admin export``: a way out, into the data of MLflow's own server."""
