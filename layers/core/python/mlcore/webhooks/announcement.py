"""Announcements: what a write says of itself, for the webhooks that want to hear of it.

A write that MLflow tells webhooks about sets the attribute ``event`` of the item that it writes, in
that same write. The stream then shows the event with the image that it made: nothing is announced
that was not written, and nothing written is forgotten. The text holds names only; values come from
the image, so that an item never holds them twice.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from mlcore.entities.registry import ModelVersion, RegisteredModel
from mlcore.entities.webhooks import EventName
from mlcore.ids import new_ulid, now_ms
from mlcore.prompts import IS_PROMPT, is_prompt

ATTRIBUTE: Final = "event"

PROMPT_TYPE: Final = "_mlflow_prompt_type"
PROMPT_TEXT: Final = "mlflow.prompt.text"


class Announcement(NamedTuple):
    """What happened to a registered model or one of its versions."""

    event_id: str
    """The same however often the write, its record or its message is repeated."""
    time_ms: int
    event: EventName
    workspace: str
    name: str
    """Of the registered model, at that time."""
    version: int | None = None
    key: str | None = None
    """Of the tag."""
    alias: str | None = None

    def text(self) -> str:
        """The value of the attribute."""
        fields = {**self._asdict(), "event": str(self.event)}
        return json.dumps({name: value for name, value in fields.items() if value is not None})


def parse(text: str) -> Announcement:
    fields: dict[str, Any] = json.loads(text)
    fields["event"] = EventName(*fields["event"].split("."))
    return Announcement(**fields)


def parse_all(text: str) -> list[Announcement]:
    """All that one write announces."""
    return [parse(line) for line in text.splitlines()]


def together(said: Sequence[str]) -> str | None:
    """The attribute of a write that announces several things, or nothing."""
    return "\n".join(said) or None


def model_created(model: RegisteredModel) -> str:
    return _text(model, "prompt" if is_prompt(model.tags) else "registered_model", "created")


def model_tag_set(model: RegisteredModel, key: str, value: str) -> str | None:
    """MLflow announces tags of prompts, and none of other registered models."""
    if not is_prompt({**model.tags, key: value}):
        return None
    return _text(model, "prompt_tag", "set", key=key)


def model_tag_deleted(model: RegisteredModel, key: str) -> str | None:
    if key == IS_PROMPT or not is_prompt(model.tags):
        return None
    return _text(model, "prompt_tag", "deleted", key=key)


def version_created(model: RegisteredModel, version: ModelVersion) -> str:
    entity = "prompt_version" if is_prompt(version.tags) else "model_version"
    return _text(model, entity, "created", version=version.version)


def version_tag_set(model: RegisteredModel, version: int, key: str) -> str:
    return _text(model, _entity(model, "version_tag"), "set", version=version, key=key)


def version_tag_deleted(model: RegisteredModel, version: int, key: str) -> str:
    return _text(model, _entity(model, "version_tag"), "deleted", version=version, key=key)


def alias_set(model: RegisteredModel, alias: str, version: int) -> str:
    entity = "prompt_alias" if is_prompt(model.tags) else "model_version_alias"
    return _text(model, entity, "created", alias=alias, version=version)


def alias_deleted(model: RegisteredModel, alias: str) -> str:
    entity = "prompt_alias" if is_prompt(model.tags) else "model_version_alias"
    return _text(model, entity, "deleted", alias=alias)


def _entity(model: RegisteredModel, noun: str) -> str:
    return f"{'prompt' if is_prompt(model.tags) else 'model'}_{noun}"


def _text(model: RegisteredModel, entity: str, action: str, **more: Any) -> str:
    event = EventName(entity, action)
    said = Announcement(new_ulid(), now_ms(), event, model.workspace, model.name, **more)
    return said.text()
