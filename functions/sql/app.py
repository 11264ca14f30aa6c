"""SQL over MLflow's system tables."""

from __future__ import annotations

from mlcore.http import lambda_handler, post
from sql import messages as m
from sql import service

RPCS = (
    post("/mlflow-serverless/sql", m.Query, service.query, "system_tables.query", version="3.0"),
)

handler = lambda_handler(RPCS)
