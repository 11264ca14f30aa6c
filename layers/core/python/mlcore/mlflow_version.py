"""The MLflow whose API, entities and files these are. Clients switch features on by it."""

from __future__ import annotations

from typing import Final

MLFLOW_VERSION: Final = "3.17.2"
