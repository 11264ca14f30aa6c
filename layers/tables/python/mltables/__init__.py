"""The system tables as Delta tables: publishes and queries them. Needs deltalake and DuckDB, which
no function of the API imports.
"""
