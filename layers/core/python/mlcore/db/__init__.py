"""Access to DynamoDB: keys, encodings, the client and the table. Nothing here knows the entities
that items represent.

A *raw item* is an item in DynamoDB JSON: ``{"PK": {"S": "EXP#1"}, …}``.
"""
