"""All models by the ``type`` of their items; for whoever needs every collection at once."""

from __future__ import annotations

from mlcore.models import (
    catalog,
    datasets,
    evaluation,
    experiments,
    gateway,
    index,
    kubeflow,
    locations,
    logged_models,
    mcp_servers,
    platform,
    registry,
    runs,
    traces,
    webhooks,
)
from mlcore.models.base import MODELS

__all__ = [
    "MODELS",
    "catalog",
    "datasets",
    "evaluation",
    "experiments",
    "gateway",
    "index",
    "kubeflow",
    "locations",
    "logged_models",
    "mcp_servers",
    "platform",
    "registry",
    "runs",
    "traces",
    "webhooks",
]
