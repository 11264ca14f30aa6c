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
APPLY_TO: Final = "apply_to"
TRACES: Final = "traces"
"""What a rule applies to without ``apply_to``: what traces store."""
PROVIDERS: Final = "providers"
"""What the AI gateway sends to providers of models."""
TARGETS: Final = (TRACES, PROVIDERS)
UNSEARCHABLE: Final = "unsearchable"
SEND: Final = "send"
REFUSE: Final = "refuse"
UNSEARCHABLES: Final = (REFUSE, SEND)
"""What happens to a request with something that rules cannot search, such as a picture."""
KINDS: Final = (FIELDS, PATTERN, ENTITIES, CONTENT)
"""What a rule looks for; each rule has exactly one of them."""
