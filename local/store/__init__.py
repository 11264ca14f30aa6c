"""The laptop's store: answers DynamoDB's operations from a SQLite file, in the caller's process."""
