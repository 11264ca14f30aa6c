"""The names of the setting ``redaction``, of the members of its rules, and of their values. Without
imports, since processes need them that never redact a text."""

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
"""The only value of ``content``: traces are stored without their content."""
APPLY_TO: Final = "apply_to"
TRACES: Final = "traces"
"""Value in ``apply_to``, and its default: the rule applies to traces before they are stored."""
PROVIDERS: Final = "providers"
"""Value in ``apply_to``: the rule applies to requests of the AI gateway to providers."""
TARGETS: Final = (TRACES, PROVIDERS)
UNSEARCHABLE: Final = "unsearchable"
SEND: Final = "send"
REFUSE: Final = "refuse"
UNSEARCHABLES: Final = (REFUSE, SEND)
"""Values of ``unsearchable``: whether a request with content that rules cannot search, such as a
picture, is refused or sent."""
KINDS: Final = (FIELDS, PATTERN, ENTITIES, CONTENT)
"""The members of a rule that say what it replaces; each rule has exactly one of them."""
