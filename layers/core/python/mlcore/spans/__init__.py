"""Spans as they are stored, and what a trace shows of them; how they come is not known here."""
