"""The local HTTP server: converts HTTP requests to API Gateway events, and the answers of Lambda
functions to HTTP responses."""
