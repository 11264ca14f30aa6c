"""Measures the local runner and other MLflow servers: how long calls take, and how many DynamoDB
requests they make."""
