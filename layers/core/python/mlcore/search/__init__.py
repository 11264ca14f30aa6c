"""One filter language for every entity; owns its grammar, fields and matching, never storage."""
