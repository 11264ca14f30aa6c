"""Measures the local runner: how long calls take and how many DynamoDB requests they make."""
