"""Stand-ins for Lambda's event source mappings: they read the table's stream and the queues and
call functions."""
