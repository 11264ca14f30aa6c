"""Declares the attributes and keys of the table's items for PynamoDB, one module for each
collection. No reads, no rules.

A module imports without the others, so a function loads only the models that it needs; all models
together are in :mod:`mlcore.models.by_type`.
"""
