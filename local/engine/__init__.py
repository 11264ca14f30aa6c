"""The DynamoDB engine of a laptop, its file and its table."""
