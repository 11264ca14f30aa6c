"""MLflow's JSON of webhooks. It never contains the secret."""

from __future__ import annotations

from typing import Any

from mlcore.entities.webhooks import Webhook


def webhook(entity: Webhook) -> dict[str, Any]:
    """Returns the JSON of MLflow's message ``mlflow.Webhook``."""
    fields: dict[str, Any] = {"webhook_id": entity.webhook_id, "name": entity.name}
    if entity.description:
        fields["description"] = entity.description
    fields["url"] = entity.url
    fields["events"] = [
        {"entity": event.entity.upper(), "action": event.action.upper()} for event in entity.events
    ]
    fields["status"] = entity.status
    fields["creation_timestamp"] = entity.creation_time
    fields["last_updated_timestamp"] = entity.last_update_time
    return fields
