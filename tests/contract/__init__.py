"""The product's rules over a real DynamoDB engine, called through its Lambda handlers."""
