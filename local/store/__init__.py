"""The laptop's store: executes DynamoDB's operations on a SQLite file, in the caller's process."""
