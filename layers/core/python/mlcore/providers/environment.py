"""The environment variables of MLflow's gateway that configure calls of models."""

from __future__ import annotations

import os
from typing import Final

from mlcore.db.client import domain_of

ALLOW_PRIVATE: Final = "MLFLOW_GATEWAY_API_BASE_ALLOW_PRIVATE_IPS"
_BEDROCK: Final = ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_ENDPOINT_URL")
_TIMEOUT: Final = "MLFLOW_GATEWAY_ROUTE_TIMEOUT_SECONDS"


def private_allowed() -> bool:
    """Whether the URL ``api_base`` of a gateway secret may resolve to private IP addresses."""
    return os.environ.get(ALLOW_PRIVATE, "").lower() in ("true", "1")


def timeout_seconds() -> float:
    """Returns how many seconds a model provider may take for each part of its answer."""
    return float(os.environ.get(_TIMEOUT, "300"))


def own_region() -> str:
    """Returns the AWS region of this server; an empty text if it is unknown."""
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or ""


def bedrock_url(region: str) -> str:
    """Returns the base URL of Amazon Bedrock in a region, or the one that AWS's endpoint variables
    set."""
    configured = next(filter(None, map(os.environ.get, _BEDROCK)), None)
    return configured or f"https://bedrock-runtime.{region}.{domain_of(region)}"
