# Much is given wrongly on purpose.
# mypy: disable-error-code="arg-type, assignment, dict-item, abstract"
"""Webhooks: the registry's events told to an address."""

from __future__ import annotations

from mlflow import MlflowClient
from mlflow.entities.webhook import WebhookStatus

from .record import Record

UNKNOWN = "0" * 32
EVENTS = (
    *("registered_model.created", "model_version.created", "model_version_tag.set"),
    *("model_version_alias.created", "prompt.created", "prompt_version.created", "prompt_tag.set"),
)
ADDRESS = "https://8.8.8.8/hook"


def hooks(record: Record, client: MlflowClient, name: str) -> None:
    do = record.do
    made = []
    for number, event in enumerate(EVENTS):
        more = {"description": "d", "secret": "s"} if number % 2 else {"status": "DISABLED"}
        hook = do(
            *(
                f"create_webhook {event}",
                client.create_webhook,
                f"{name}-{number}",
                ADDRESS,
                [event],
            ),
            **more,
        )
        made.append(hook.webhook_id if hook else UNKNOWN)
    refused = (
        *(("", ADDRESS, ["prompt.created"]), (f"{name}-x", "", ["prompt.created"])),
        *((f"{name}-x", "ftp://h", ["prompt.created"]), (f"{name}-x", ADDRESS, [])),
        *((f"{name}-x", ADDRESS, ["bad.event"]), ("a/b", ADDRESS, ["prompt.created"])),
        *(("x" * 300, ADDRESS, ["prompt.created"]), (" ", ADDRESS, ["prompt.created"])),
        *((f"{name}-x", "http://8.8.8.8", ["prompt.created"]), (f"{name}-x", "h", EVENTS[:1])),
    )
    for given in refused:
        do(f"create_webhook {str(given)[:40]}", client.create_webhook, *given)
    do("create_webhook again", client.create_webhook, f"{name}-0", ADDRESS, ["prompt.created"])
    for webhook_id in (made[0], made[1], UNKNOWN, "", "x"):
        do("get_webhook", client.get_webhook, webhook_id)
    changes = (
        *({"name": f"{name}-new"}, {"description": "other"}, {"url": ADDRESS + "/x"}, {}),
        *({"events": ["model_version.created", "prompt.created"]}, {"secret": "t"}, {"name": ""}),
        *({"status": WebhookStatus.ACTIVE}, {"status": "DISABLED"}, {"status": "BAD"}, {"url": ""}),
        *({"events": []}, {"url": "ftp://h"}, {"description": ""}, {"name": "a/b"}),
    )
    for change in changes:
        for webhook_id in (made[0], UNKNOWN):
            do(f"update_webhook {change}", client.update_webhook, webhook_id, **change)
    mine = set(made)
    do(
        "list",
        lambda: [webhook for webhook in client.list_webhooks(1000) if webhook.webhook_id in mine],
    )
    for most in (0, -1, 1001):
        do(f"list {most}", client.list_webhooks, most)
    do("list token", client.list_webhooks, 5, "bad")
    for webhook_id in (made[3], made[3], UNKNOWN):
        do("delete_webhook", client.delete_webhook, webhook_id)
    do("get deleted", client.get_webhook, made[3])
    do("test missing", client.test_webhook, UNKNOWN)
    for webhook_id in made:
        do("delete_webhook all", client.delete_webhook, webhook_id)
