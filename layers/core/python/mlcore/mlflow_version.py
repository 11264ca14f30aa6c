"""The version of MLflow that this product implements. Clients enable features by it."""

from __future__ import annotations

from typing import Final

MLFLOW_VERSION: Final = "3.18.0"
