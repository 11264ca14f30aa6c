"""A DynamoDB table in a SQLite file of this process: the laptop's store."""
