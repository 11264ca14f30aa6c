"""The stream and the queues, as event source mappings read them."""
