"""Stock MLflow's SQL store, in this process, as the oracle of searches; owns how it is asked."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mlflow")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from mlflow import entities, exceptions
    from mlflow.store.tracking import sqlalchemy_store as store
    from mlflow.utils import search_utils

mlflow_entities: Any = entities
MlflowException: Any = exceptions.MlflowException
sqlalchemy_store: Any = store
SearchUtils: Any = search_utils.SearchUtils
SearchExperimentsUtils: Any = search_utils.SearchExperimentsUtils

COUNT = int(os.environ.get("SEARCH_SAMPLES", "100"))
"""Searches compared per test; the texts parsed are ten times as many."""
SEED = int(os.environ.get("SEARCH_SEED", "20"))

REFUSED = "refused"


def open_store(folder: Path) -> Any:
    return sqlalchemy_store.SqlAlchemyStore(
        f"sqlite:///{folder / 'stock.db'}", str(folder / "artifacts")
    )


def answer(call: Any, *arguments: Any) -> tuple[Any, str]:
    """(result, "") or (REFUSED, message); a crash of stock is a refusal without a message."""
    try:
        return call(*arguments), ""
    except MlflowException as error:
        return REFUSED, error.message if error.error_code == "INVALID_PARAMETER_VALUE" else ""
    except Exception:
        return REFUSED, ""
