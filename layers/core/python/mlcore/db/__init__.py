"""DynamoDB: keys, encodings, the client and the table; knows items, never what they mean."""
