"""A webhook, and the events that one can subscribe to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

ACTIVE: Final = "ACTIVE"
DISABLED: Final = "DISABLED"
ACTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "registered_model": ("created",),
    "model_version": ("created",),
    "model_version_tag": ("deleted", "set"),
    "model_version_alias": ("created", "deleted"),
    "prompt": ("created",),
    "prompt_version": ("created",),
    "prompt_tag": ("deleted", "set"),
    "prompt_version_tag": ("deleted", "set"),
    "prompt_alias": ("created", "deleted"),
    "budget_policy": ("exceeded",),
}
"""The actions that webhooks can subscribe to, by entity, in alphabetical order."""


class EventName(NamedTuple):
    """The name of a webhook event: an entity type and an action, in lower case as in deliveries."""

    entity: str
    action: str

    def __str__(self) -> str:
        return f"{self.entity}.{self.action}"


class Webhook(NamedTuple):
    webhook_id: str
    workspace: str
    name: str
    url: str
    events: tuple[EventName, ...]
    status: str
    description: str
    sealed_secret: str
    """The secret, encrypted by :mod:`mlcore.secrets`; empty without one."""
    creation_time: int
    last_update_time: int
