"""Webhooks: what can be subscribed to, which addresses may be reached, and how a delivery is made.

Nothing here reads or writes the table.
"""
