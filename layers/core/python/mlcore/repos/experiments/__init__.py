"""Reads and writes experiments, their names and ids in DynamoDB."""
