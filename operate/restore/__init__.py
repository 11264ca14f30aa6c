"""``python -m operate.restore``: restores a DynamoDB table and its files to a point in time, and
creates a stack that adopts them."""
