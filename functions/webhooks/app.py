"""The API routes that manage and test webhooks, by which events are sent to users' URLs."""

from __future__ import annotations

from mlcore.http import delete, get, lambda_handler, patch, post
from webhooks import messages as m
from webhooks import sample_delivery, service

RPCS = (
    post(
        "/mlflow/webhooks",
        m.CreateWebhook,
        service.create_webhook,
        "shared_rules.administrators",
        since="3.3",
        cost=1,
    ),
    get(
        "/mlflow/webhooks",
        m.ListWebhooks,
        service.list_webhooks,
        "shared_rules.administrators",
        since="3.3",
        cost=1,
    ),
    get(
        "/mlflow/webhooks/{webhook_id}",
        m.GetWebhook,
        service.get_webhook,
        "shared_rules.administrators",
        since="3.3",
        cost=1,
    ),
    patch(
        "/mlflow/webhooks/{webhook_id}",
        m.UpdateWebhook,
        service.update_webhook,
        "shared_rules.administrators",
        since="3.3",
        cost=2,
    ),
    delete(
        "/mlflow/webhooks/{webhook_id}",
        m.DeleteWebhook,
        service.delete_webhook,
        "shared_rules.administrators",
        since="3.3",
        cost=2,
    ),
    post(
        "/mlflow/webhooks/{webhook_id}/test",
        m.TestWebhook,
        sample_delivery.test_webhook,
        "shared_rules.administrators",
        since="3.3",
    ),
)

handler = lambda_handler(RPCS)
