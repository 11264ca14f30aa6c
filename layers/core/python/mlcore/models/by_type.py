"""Imports all item classes, for code that needs every ``type`` of item."""

from __future__ import annotations

from mlcore.models import (
    alerts,
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
    saved_queries,
    scim,
    skills,
    traces,
    webhooks,
)
from mlcore.models.base import MODELS

__all__ = [
    "MODELS",
    "alerts",
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
    "saved_queries",
    "scim",
    "skills",
    "traces",
    "webhooks",
]
