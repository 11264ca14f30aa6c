"""What a deployment decides about calls of models, by the names of MLflow's own gateway."""

from __future__ import annotations

import os
from typing import Final

ALLOW_PRIVATE: Final = "MLFLOW_GATEWAY_API_BASE_ALLOW_PRIVATE_IPS"
_TIMEOUT: Final = "MLFLOW_GATEWAY_ROUTE_TIMEOUT_SECONDS"


def private_allowed() -> bool:
    """Whether addresses that somebody configured may be of a private network."""
    return os.environ.get(ALLOW_PRIVATE, "").lower() in ("true", "1")


def timeout_seconds() -> float:
    """How long a provider may take for each part of its answer."""
    return float(os.environ.get(_TIMEOUT, "300"))
