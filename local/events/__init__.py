"""Event source mappings: read the stream and the queues and call functions."""
