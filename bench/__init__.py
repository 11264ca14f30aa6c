"""Measures the local runner: how long calls take and what they ask of DynamoDB."""
