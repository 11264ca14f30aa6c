"""Asks the Delta tables of traces with Polars, without a server.

    pip install polars deltalake
    python examples/system_tables/traces_polars.py FOLDER

FOLDER is ``system-tables/files/system/mlflow`` of a laptop's data folder, or the same below the
bucket of a deployment (``s3://…/system/mlflow``). A map is a list of pairs for Polars.
"""

from __future__ import annotations

import json
import sys

import polars as pl

TABLES = sys.argv[1].rstrip("/")


def attribute(name: str) -> pl.Expr:
    """The value of an attribute of a span; null if the span has none of this name."""
    pairs = pl.col("attributes").list
    values = pairs.eval(
        pl.when(pl.element().struct.field("key") == name).then(pl.element().struct.field("value"))
    )
    return values.list.drop_nulls().list.first().alias(name)


traces = pl.scan_delta(f"{TABLES}/traces")
spans = pl.scan_delta(f"{TABLES}/spans")
assessments = pl.scan_delta(f"{TABLES}/assessments")
kinds = spans.with_columns(attribute("mlflow.spanType"), attribute("mlflow.llm.model"))
answers = {
    "calls by model": kinds.filter(pl.col("mlflow.spanType") == "CHAT_MODEL")
    .group_by("mlflow.llm.model")
    .len()
    .sort("mlflow.llm.model"),
    "traces by state": traces.group_by("state").len().sort("state"),
    "quality": assessments.filter("valid")
    .group_by("assessment_name", "source_type")
    .agg(pl.len(), pl.col("numeric_value").mean())
    .sort("assessment_name", "source_type"),
}
for question, answer in answers.items():
    print(json.dumps({question: answer.collect().rows()}))
