"""The names of the setting ``redaction`` and of the members of its rules, which also a process
needs that never redacts a text."""

from __future__ import annotations

from typing import Final

SETTING: Final = "redaction"
RULES: Final = "rules"
WORKSPACES: Final = "workspaces"
EXPERIMENTS: Final = "experiments"
ENDPOINTS: Final = "endpoints"
FIELDS: Final = "fields"
PATTERN: Final = "pattern"
ENTITIES: Final = "entities"
REPLACEMENT: Final = "replacement"
CONTENT: Final = "content"
NO_CONTENT: Final = "none"
"""The only value of ``content``: traces are stored without what was said."""
KINDS: Final = (FIELDS, PATTERN, ENTITIES, CONTENT)
"""What a rule looks for; each rule has exactly one of them."""
