"""Erases a user: from the items of the table, and from the audit."""
