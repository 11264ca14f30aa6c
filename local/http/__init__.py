"""The HTTP server: converts requests to API Gateway events, and functions' answers to responses."""
