"""Receives spans: parses OpenTelemetry's protocol, converts the spans and writes them to their
traces."""
