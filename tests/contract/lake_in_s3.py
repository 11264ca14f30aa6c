"""A place for the system tables in an emulator of S3, behind a front that counts and can refuse."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from mlcore.system_tables import storage
from tests import ministack
from tests.contract import delta_readers
from tests.contract.lake import Tables
from tests.doubles import s3_front
from tests.doubles.s3_requests import Requests
from tests.doubles.signatures import Sent, Wrong
from tests.engines import REGION

_numbers = itertools.count()


class Mortal:
    """Stands for a process that writes to S3: it dies before its n-th request that changes
    anything, and nothing that it asks for afterwards is done. To die before a request that only
    reads leaves what dying after the write before it leaves."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.died = False
        self.requests = Requests()

    def live_for(self, writes: int | None) -> None:
        self.left, self.died = writes, False

    def check(self, sent: Sent) -> None:
        self.requests.check(sent)
        if self.left is not None and sent.method not in {"GET", "HEAD"}:
            self.died = self.died or self.left == 0
            self.left -= 1
        if self.died:
            raise Wrong("who asks is dead")


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Mortal]]:
    mortal = Mortal()
    with (
        ministack.running(tmp_path_factory.mktemp("ministack")) as url,
        s3_front.serving(url, mortal) as front,
    ):
        yield front.url, mortal


@pytest.fixture
def bucket(
    s3: tuple[str, Mortal], tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Tables]:
    url, mortal = s3
    mortal.live_for(None)
    monkeypatch.delenv(storage.FOLDER)
    name = f"system-tables-{next(_numbers)}"
    monkeypatch.setenv(storage.BUCKET, name)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", url)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.setenv("AWS_REGION", REGION)
    client = boto3.client("s3", endpoint_url=url, region_name=REGION)
    client.create_bucket(Bucket=name)
    client.close()
    storage.store.cache_clear()
    yield tables
    storage.store.cache_clear()
    mortal.live_for(None)


def rows(table: str) -> list[dict[str, Any]]:
    """The rows of a table, by a reader that is not ours."""
    return delta_readers.scanned(table).collect().to_dicts()
