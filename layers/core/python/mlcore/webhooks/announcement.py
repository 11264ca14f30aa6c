"""Announcements: texts that name the events of a write, from which webhooks are notified.

A write that MLflow notifies webhooks about sets the attribute ``event`` of the written item in the
same request. The stream record then holds the event together with the new image of the item: an
event is announced if and only if its write succeeded. For the registry the attribute holds names
only; values are taken from the image, so that no item stores them twice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from mlcore import reserved_tags
from mlcore.entities.gateway import BudgetPolicy
from mlcore.entities.registry import ModelVersion, RegisteredModel
from mlcore.entities.webhooks import EventName
from mlcore.ids import new_ulid, now_ms
from mlcore.prompts import is_prompt

ATTRIBUTE: Final = "event"


class Announcement(NamedTuple):
    """A webhook event of a registered model, a version of one, a gateway budget or an SQL alert."""

    event_id: str
    """The id of the event, the same if the write, its stream record or its message is repeated."""
    time_ms: int
    event: EventName
    workspace: str
    name: str
    """The registered model's name at that time; the id of the budget or alert."""
    version: int | None = None
    key: str | None = None
    """The tag's key."""
    alias: str | None = None
    data: Mapping[str, Any] | None = None
    """The data of an event of a budget or alert. For other events it is None, because the image of
    the item contains their data."""

    def text(self) -> str:
        """Returns the announcement as the text that the attribute ``event`` of the written item
        holds."""
        fields = {**self._asdict(), "event": str(self.event)}
        return json.dumps({name: value for name, value in fields.items() if value is not None})


def parse(text: str) -> Announcement:
    fields: dict[str, Any] = json.loads(text)
    fields["event"] = EventName(*fields["event"].split("."))
    return Announcement(**fields)


def parse_all(text: str) -> list[Announcement]:
    """Parses ``event``, an attribute that a DynamoDB write sets: each line announces webhook events
    to the indexer. Returns the announcements, one for each line."""
    return [parse(line) for line in text.splitlines()]


def join_texts(texts: Sequence[str]) -> str | None:
    """Joins the texts of the events that one write announces to webhooks to one text, the value of
    the item's attribute ``event``; None if there are none."""
    return "\n".join(texts) or None


def model_created(model: RegisteredModel) -> str:
    return _text(model, "prompt" if is_prompt(model.tags) else "registered_model", "created")


def model_tag_set(model: RegisteredModel, key: str, value: str) -> str | None:
    """Returns the JSON text of the webhook event about a new value of a prompt's tag, for the
    attribute ``event`` of the item. None for a model that is no prompt: MLflow has no such event
    for it."""
    if not is_prompt({**model.tags, key: value}):
        return None
    return _text(model, "prompt_tag", "set", key=key)


def model_tag_deleted(model: RegisteredModel, key: str) -> str | None:
    if key == reserved_tags.IS_PROMPT or not is_prompt(model.tags):
        return None
    return _text(model, "prompt_tag", "deleted", key=key)


def version_created(model: RegisteredModel, version: ModelVersion) -> str:
    entity = "prompt_version" if is_prompt(version.tags) else "model_version"
    return _text(model, entity, "created", version=version.version)


def version_tag_set(model: RegisteredModel, version: int, key: str) -> str:
    return _text(model, _prompt_or_model(model, "version_tag"), "set", version=version, key=key)


def version_tag_deleted(model: RegisteredModel, version: int, key: str) -> str:
    return _text(model, _prompt_or_model(model, "version_tag"), "deleted", version=version, key=key)


def alias_set(model: RegisteredModel, alias: str, version: int) -> str:
    entity = "prompt_alias" if is_prompt(model.tags) else "model_version_alias"
    return _text(model, entity, "created", alias=alias, version=version)


def alias_deleted(model: RegisteredModel, alias: str) -> str:
    entity = "prompt_alias" if is_prompt(model.tags) else "model_version_alias"
    return _text(model, entity, "deleted", alias=alias)


def budget_exceeded(
    policy: BudgetPolicy, spent_dollars: float, window_start_ms: int, workspace: str
) -> str:
    """Returns the JSON text of the event ``budget_policy.exceeded``, for the attribute ``event``.

    Args:
        workspace: the workspace of the call that exceeded the budget. Its webhooks are notified.
    """
    event_data = {
        "budget_policy_id": policy.budget_policy_id,
        "budget_unit": policy.budget_unit,
        "budget_amount": policy.budget_amount,
        "current_spend": spent_dollars,
        "duration_unit": policy.duration_unit,
        "duration_value": policy.duration_value,
        "target_scope": policy.target_scope,
        "workspace": workspace,
        "target_value": policy.target_value,
        "window_start": window_start_ms,
    }
    event = EventName("budget_policy", "exceeded")
    return Announcement(
        new_ulid(), now_ms(), event, workspace, policy.budget_policy_id, data=event_data
    ).text()


def _prompt_or_model(model: RegisteredModel, noun: str) -> str:
    return f"{'prompt' if is_prompt(model.tags) else 'model'}_{noun}"


def _text(model: RegisteredModel, entity: str, action: str, **details: Any) -> str:
    event = EventName(entity, action)
    announcement = Announcement(new_ulid(), now_ms(), event, model.workspace, model.name, **details)
    return announcement.text()
