"""What `make publish-ui` puts into the bucket, against a bucket in memory."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from local.http import ui_files
from local.http.ui_files import ASK_EACH_TIME, FOLDER, FOR_A_YEAR, dashboards
from operate.ui_bucket import CannotPublish, bucket_of, publish

PAGES = set(ui_files.DASHBOARD_PAGES)


class Bucket:
    """The three calls of S3 that publishing makes."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.order: list[str] = []

    def put_object(self, Key: str, **more: Any) -> None:  # noqa: N803 - S3's name
        self.objects[Key] = more
        self.order.append(Key)

    def get_paginator(self, _operation: str) -> Bucket:
        return self

    def paginate(self, **_: Any) -> list[dict[str, Any]]:
        entries = [
            {"Key": key, "ETag": f'"{hashlib.md5(stored["Body"]).hexdigest()}"'}
            for key, stored in self.objects.items()
        ]
        return [{"Contents": entries[:100]}, {"Contents": entries[100:]}, {}]


def test_ui_is_published_once_and_the_pages_last() -> None:
    bucket = Bucket()
    sent, kept = publish(bucket, "b", FOLDER)
    assert (sent, kept) == (len(bucket.objects), 0)
    assert {"dashboards", "dashboards/keys", "dashboards/trash", "dashboards/start"} <= PAGES
    assert set(bucket.order[-len(PAGES) - 1 :]) == {*PAGES, "index.html"}
    assert {
        "static-files/dashboards/echarts.js",
        "static-files/dashboards/echarts.LICENSE.txt",
    } < set(bucket.objects)
    assert bucket.objects["dashboards"]["ContentType"] == "text/html; charset=utf-8"
    assert bucket.objects["static-files/dashboards/page.js"]["CacheControl"] == ASK_EACH_TIME
    page = bucket.objects["index.html"]
    assert page["CacheControl"] == ASK_EACH_TIME
    assert page["ContentType"] == "text/html; charset=utf-8"
    hashed = next(key for key in bucket.objects if key.startswith("static-files/static/js/main."))
    assert bucket.objects[hashed]["CacheControl"] == FOR_A_YEAR
    assert publish(bucket, "b", FOLDER) == (0, sent)


def test_only_what_changed_is_sent(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("one")
    bucket = Bucket()
    ours = len(list(dashboards()))
    assert publish(bucket, "b", tmp_path) == (ours + 2, 0)
    (tmp_path / "index.html").write_text("two")
    (tmp_path / "new.js").write_text("new")
    assert publish(bucket, "b", tmp_path) == (3, ours)
    assert bucket.objects["index.html"]["Body"] == b"two"


def test_reasons_not_to_publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CannotPublish, match="make setup"):
        publish(Bucket(), "b", tmp_path)
    (tmp_path / "index.html").write_text("page")
    monkeypatch.setattr(ui_files, "CHARTS", tmp_path / "none")
    with pytest.raises(CannotPublish, match="chart library"):
        publish(Bucket(), "b", tmp_path)

    class CloudFormation:
        def describe_stacks(self, **_: Any) -> Any:
            return {"Stacks": [{"Outputs": [{"OutputKey": "ApiUrl", "OutputValue": "x"}]}]}

    with pytest.raises(CannotPublish, match="Ui=false"):
        bucket_of(CloudFormation(), "stack")
