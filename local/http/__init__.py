"""HTTP in, API Gateway events on, answers out."""
