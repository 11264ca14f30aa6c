"""What a deployment decides about calls of models, by the names of MLflow's own gateway."""

from __future__ import annotations

import os
from typing import Final

from mlcore.db.client import domain_of

ALLOW_PRIVATE: Final = "MLFLOW_GATEWAY_API_BASE_ALLOW_PRIVATE_IPS"
_BEDROCK: Final = ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_ENDPOINT_URL")
_TIMEOUT: Final = "MLFLOW_GATEWAY_ROUTE_TIMEOUT_SECONDS"


def private_allowed() -> bool:
    """Whether addresses that somebody configured may be of a private network."""
    return os.environ.get(ALLOW_PRIVATE, "").lower() in ("true", "1")


def timeout_seconds() -> float:
    """How long a provider may take for each part of its answer."""
    return float(os.environ.get(_TIMEOUT, "300"))


def own_region() -> str:
    """The region of this server; empty where nobody says it."""
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or ""


def bedrock_url(region: str) -> str:
    """Where Amazon Bedrock answers, by the variables of AWS's own clients."""
    said = next(filter(None, map(os.environ.get, _BEDROCK)), None)
    return said or f"https://bedrock-runtime.{region}.{domain_of(region)}"
