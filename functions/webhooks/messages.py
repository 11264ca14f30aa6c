"""Requests of the webhook RPCs, in the field order of MLflow's webhooks.proto."""

from __future__ import annotations

from typing import Annotated

from mlcore.wire import Int32, Message, array, enum, intlike, required, string

Entity = Annotated[
    str | None,
    enum(
        ENTITY_UNSPECIFIED=0,
        REGISTERED_MODEL=1,
        MODEL_VERSION=2,
        MODEL_VERSION_TAG=3,
        MODEL_VERSION_ALIAS=4,
        PROMPT=5,
        PROMPT_VERSION=6,
        PROMPT_TAG=7,
        PROMPT_VERSION_TAG=8,
        PROMPT_ALIAS=9,
        BUDGET_POLICY=10,
    ),
]
Action = Annotated[
    str | None,
    enum(ACTION_UNSPECIFIED=0, CREATED=1, UPDATED=2, DELETED=3, SET=4, EXCEEDED=5),
]
Status = Annotated[str | None, enum(ACTIVE=1, DISABLED=2)]


class WebhookEvent(Message):
    entity: Entity
    action: Action


class CreateWebhook(Message):
    name: str
    description: str
    url: str
    events: list[WebhookEvent]
    secret: str
    status: Status
    checks = {
        "name": (string, required),
        "url": (string, required),
        "events": (array, required),
        "description": (string,),
        "secret": (string,),
        "status": (string,),
    }


class ListWebhooks(Message):
    max_results: Int32 = 100
    page_token: str
    checks = {"max_results": (intlike,), "page_token": (string,)}


class GetWebhook(Message):
    webhook_id: str


class UpdateWebhook(Message):
    webhook_id: str
    name: str
    description: str
    url: str
    events: list[WebhookEvent]
    secret: str
    status: Status
    checks = {
        "name": (string,),
        "description": (string,),
        "url": (string,),
        "events": (array,),
        "secret": (string,),
        "status": (string,),
    }


class DeleteWebhook(Message):
    webhook_id: str


class TestWebhook(Message):
    webhook_id: str
    event: WebhookEvent
