"""The filter language of all searches: its grammar, fields and matching. Never reads storage."""
