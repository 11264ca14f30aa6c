"""Erases a user: from the items of the DynamoDB table, and from the audit."""
