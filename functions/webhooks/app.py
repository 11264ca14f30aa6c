"""The RPCs of webhooks: who wants to hear of which event."""

from __future__ import annotations

from mlcore.http import delete, get, lambda_handler, patch, post
from webhooks import messages as m
from webhooks import service, trial

RPCS = (
    post("/mlflow/webhooks", m.CreateWebhook, service.create_webhook),
    get("/mlflow/webhooks", m.ListWebhooks, service.list_webhooks),
    get("/mlflow/webhooks/{webhook_id}", m.GetWebhook, service.get_webhook),
    patch("/mlflow/webhooks/{webhook_id}", m.UpdateWebhook, service.update_webhook),
    delete("/mlflow/webhooks/{webhook_id}", m.DeleteWebhook, service.delete_webhook),
    post("/mlflow/webhooks/{webhook_id}/test", m.TestWebhook, trial.test_webhook),
)

handler = lambda_handler(RPCS)
