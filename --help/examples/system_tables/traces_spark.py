"""Asks the Delta tables of traces with Spark. The tests do not run this example: Spark is not
installed there.

    pip install pyspark delta-spark
    python examples/system_tables/traces_spark.py FOLDER

FOLDER is ``system-tables/files/system/mlflow`` of a laptop's data folder, or the same below the
bucket of a deployment (``s3a://…/system/mlflow``, with the package hadoop-aws).
"""

from __future__ import annotations

import sys
from importlib import import_module

TABLES = sys.argv[1].rstrip("/")
QUESTIONS = (
    """
    SELECT attributes['mlflow.llm.model'] AS model, count(*) AS calls,
        sum(CAST(get_json_object(attributes['mlflow.chat.tokenUsage'], '$.total_tokens') AS BIGINT))
            AS tokens
    FROM spans WHERE attributes['mlflow.spanType'] = 'CHAT_MODEL' GROUP BY 1
    """,
    "SELECT date_trunc('DAY', request_time) AS day, state, count(*) FROM traces GROUP BY 1, 2",
    """
    SELECT assessment_name, source_type, count(*), avg(numeric_value) FROM assessments
    WHERE valid GROUP BY 1, 2
    """,
)

builder = (
    import_module("pyspark.sql")
    .SparkSession.builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
)
spark = import_module("delta").configure_spark_with_delta_pip(builder).getOrCreate()
for table in ("traces", "spans", "assessments"):
    spark.read.format("delta").load(f"{TABLES}/{table}").createOrReplaceTempView(table)
for question in QUESTIONS:
    spark.sql(question).show(truncate=False)
