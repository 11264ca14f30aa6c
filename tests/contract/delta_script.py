"""Runs in an environment of its own: DuckDB reads Delta tables by its own extension.

Takes from standard input ``[[SQL, target], …]`` and writes each answer into a Parquet file.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path

import duckdb


def main() -> None:
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for name in ("httpfs", "delta"):
        spec = importlib.util.find_spec(f"duckdb_extension_{name}")
        assert spec is not None
        assert spec.origin is not None
        folder = Path(spec.origin).parent / "extensions" / f"v{duckdb.__version__}"
        connection.execute(f"LOAD '{folder / name}.duckdb_extension'")
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3", "").partition("://")[2]
    if endpoint:
        connection.execute(
            "CREATE SECRET (TYPE s3, KEY_ID 'key', SECRET 'secret', REGION 'us-east-1', "
            f"ENDPOINT '{endpoint}', USE_SSL false, URL_STYLE 'path')"
        )
    for sql, target in json.load(sys.stdin):
        connection.execute(f"COPY ({sql}) TO '{target}' (FORMAT parquet)")


if __name__ == "__main__":
    main()
