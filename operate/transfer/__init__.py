"""Data of another MLflow server, read through its REST API and brought into the product's table."""
