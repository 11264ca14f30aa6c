"""Spans in: what came by OpenTelemetry's protocol, what is stored of it, and what a trace shows."""
