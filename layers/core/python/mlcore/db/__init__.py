"""Access to DynamoDB: keys, encodings, the client and the table. Knows nothing about the entities
that items represent."""
