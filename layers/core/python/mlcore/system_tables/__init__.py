"""The system tables: what their rows are, and where they come from. Imports no engine for tables;
who publishes and queries them has those (``layers/tables``).
"""
