"""Stand-ins for AWS: files, keys and queues."""
