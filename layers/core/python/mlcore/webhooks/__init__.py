"""Webhooks: events to subscribe to, addresses that may be reached, and deliveries. Does not use the
table."""
