"""Traces: the trace item, its spans, and how traces are found."""
