"""Traces: the trace item, its spans, and the search of traces."""
