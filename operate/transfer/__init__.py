"""Reads the data of another MLflow server through its REST API and writes them to the product's
table."""
