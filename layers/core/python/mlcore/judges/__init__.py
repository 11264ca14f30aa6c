"""Judges: builds chats with their models from traces, and parses the answers. Stores nothing."""
