"""Settings of a deployment for webhooks, read once from the environment. Variables whose names
begin with ``MLFLOW_`` are those of MLflow's server."""

from __future__ import annotations

import functools
import os
from typing import NamedTuple

from mlcore.environment import workspaces_enabled


class WebhookSettings(NamedTuple):
    allowed_schemes: tuple[str, ...]
    allow_private_addresses: bool
    allow_loopback: bool
    """Whether plain http to loopback addresses is allowed, for a server on a laptop."""
    timeout_seconds: float
    """Timeout of one attempt."""
    backoff_seconds: float
    """Seconds before the second attempt; the wait doubles with each further attempt."""
    workspaces: bool
    """Whether deliveries contain the workspace."""


@functools.cache
def webhook_settings() -> WebhookSettings:
    get = os.environ.get
    return WebhookSettings(
        allowed_schemes=tuple(
            scheme.strip() for scheme in get("MLFLOW_WEBHOOK_ALLOWED_SCHEMES", "https").split(",")
        ),
        allow_private_addresses=_is_on("MLFLOW_WEBHOOK_ALLOW_PRIVATE_IPS"),
        allow_loopback=_is_on("WEBHOOK_ALLOW_LOOPBACK"),
        timeout_seconds=float(get("MLFLOW_WEBHOOK_REQUEST_TIMEOUT", "30")),
        backoff_seconds=float(get("WEBHOOK_BACKOFF_SECONDS", "1")),
        workspaces=workspaces_enabled(),
    )


def _is_on(name: str) -> bool:
    return os.environ.get(name, "").lower() in {"1", "true"}
