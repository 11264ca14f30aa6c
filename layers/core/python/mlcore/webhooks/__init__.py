"""Webhooks (URLs of users that are called after events): the events, which addresses may be called,
and deliveries. Does not use the table.
"""
