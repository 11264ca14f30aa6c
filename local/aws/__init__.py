"""What stands in for AWS: files, keys and queues."""
