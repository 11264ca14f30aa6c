"""Webhooks are for administrators."""

from __future__ import annotations

from mlcore.policies.requests import Policy, Route, administrators

_WEBHOOKS = "/2.0/mlflow/webhooks"

POLICIES: dict[Route, Policy] = {
    ("POST", _WEBHOOKS): administrators,
    ("GET", _WEBHOOKS): administrators,
    ("GET", f"{_WEBHOOKS}/{{webhook_id}}"): administrators,
    ("PATCH", f"{_WEBHOOKS}/{{webhook_id}}"): administrators,
    ("DELETE", f"{_WEBHOOKS}/{{webhook_id}}"): administrators,
    ("POST", f"{_WEBHOOKS}/{{webhook_id}}/test"): administrators,
}
