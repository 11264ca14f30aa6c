"""PynamoDB declarations of the table's items, one module for each collection; no reads, no rules.

A module imports without the others, so a function pays for what it uses; all models together are in
:mod:`mlcore.models.by_type`.
"""
