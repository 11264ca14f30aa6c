"""Publishes the system tables as Delta tables and runs SQL queries on them. Requires deltalake and
DuckDB, which no function of the API imports.
"""
