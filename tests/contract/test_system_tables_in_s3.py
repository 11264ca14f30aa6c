"""The tables in a bucket: published there, asked there, read there by polars."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import boto3
import polars
import pytest

from mlcore.system_tables import location
from tests import ministack
from tests.contract.conftest import Store
from tests.contract.lake import Tables, tables
from tests.engines import REGION

__all__ = ["tables"]

BUCKET = "system-tables"


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ministack.running(tmp_path_factory.mktemp("ministack")) as url:
        yield url


@pytest.fixture
def bucket(s3: str, tables: Tables, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tables]:
    monkeypatch.delenv(location.FOLDER)
    monkeypatch.setenv(location.BUCKET, BUCKET)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", s3)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.setenv("AWS_REGION", REGION)
    client = boto3.client("s3", endpoint_url=s3, region_name=REGION)
    client.create_bucket(Bucket=BUCKET)
    client.close()
    location.store.cache_clear()
    yield tables
    location.store.cache_clear()


def test_what_is_published_in_a_bucket_is_asked_there(
    store: Store, bucket: Tables, s3: str, tmp_path: Path
) -> None:
    experiment = store.api.post("experiments/create", name="s3")["experiment_id"]
    run = store.api.post("runs/create", experiment_id=experiment)["run"]["info"]["run_id"]
    for step in range(3):
        store.api.post(
            "runs/log-metric", run_id=run, key="m", value=step, step=step, timestamp=step
        )
        bucket.follow()
    assert bucket.seed("metric_statistics", run_id=run) == [["m", 3, 1.0, 2.0, 0.0, 0.5, 1.0, 1.5]]
    options = {"AWS_ENDPOINT_URL": s3, "AWS_ALLOW_HTTP": "true", "AWS_REGION": REGION}
    history = polars.scan_delta(
        location.table_uri("run_metrics_history"), storage_options=options
    ).collect()
    assert sorted(history["metric_value"]) == [0.0, 1.0, 2.0]
    assert list(location.store().list("landing")) == []
