"""The system tables, which make experiments, runs and traces available in SQL: their rows, and how
rows are made from the items of DynamoDB. Imports no table engine; ``layers/tables`` has the engines
that publish and query the tables.

A *landing object* is a file with one batch of the stream's changes, from which the publisher
updates the tables.
"""
