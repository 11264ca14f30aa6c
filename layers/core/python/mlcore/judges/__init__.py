"""Judges (models with instructions that rate traces): builds the chats that are sent to their
models from traces, and parses the answers. Stores nothing.

A *subject* is a trace with its spans; a *question* is what a judge's model is asked about it.
"""
