"""Presigned URLs name the bucket's own region, in all regions that botocore knows."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import botocore.session
import pytest

from mlcore.artifacts.s3_store import Bucket

_SESSION = botocore.session.get_session()
REGIONS = {
    region: partition
    for partition in _SESSION.get_available_partitions()
    for region in _SESSION.get_available_regions("s3", partition)
}
SUFFIXES = {
    "aws": "amazonaws.com",
    "aws-cn": "amazonaws.com.cn",
    "aws-us-gov": "amazonaws.com",
    "aws-eusc": "amazonaws.eu",
    "aws-iso": "c2s.ic.gov",
    "aws-iso-b": "sc2s.sgov.gov",
    "aws-iso-e": "cloud.adc-e.uk",
    "aws-iso-f": "csp.hci.ic.gov",
}
_ENDPOINTS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")


@pytest.fixture(autouse=True)
def _in_lambda(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*_ENDPOINTS, "AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "x")


def urls(region: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", region)
    monkeypatch.setenv("AWS_REGION", region)
    bucket = Bucket("files")
    return [
        bucket.download_url("a b/é", seconds=9, content_type="a/b", disposition="c", origin=""),
        bucket.upload_url("a b/é", seconds=9, content_type=None, origin=""),
        bucket.upload_url("a b/é", seconds=9, content_type="text/plain", origin=""),
        bucket.part_url("a b/é", "upload", 2, seconds=9, origin=""),
    ]


@pytest.mark.parametrize("region", sorted(REGIONS))
def test_every_region(region: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for url in urls(region, monkeypatch):
        parts = urlsplit(url)
        assert parts.scheme == "https"
        assert parts.netloc == f"files.s3.{region}.{SUFFIXES[REGIONS[region]]}"
        assert parts.path == "/a%20b/%C3%A9"
        signed = parse_qs(parts.query)
        assert signed["X-Amz-Algorithm"] == ["AWS4-HMAC-SHA256"]
        assert signed["X-Amz-Credential"][0].split("/")[2:] == [region, "s3", "aws4_request"]


def test_a_packed_file_is_downloaded_as_it_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    [download, *_] = urls("us-east-1", monkeypatch)
    assert parse_qs(urlsplit(download).query)["response-content-encoding"] == ["identity"]


@pytest.mark.parametrize(
    ("setting", "host"),
    [
        ("AWS_USE_DUALSTACK_ENDPOINT", "files.s3.dualstack.us-east-1.amazonaws.com"),
        ("AWS_USE_FIPS_ENDPOINT", "files.s3-fips.us-east-1.amazonaws.com"),
    ],
)
def test_other_endpoints(setting: str, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(setting, "true")
    assert {urlsplit(url).netloc for url in urls("us-east-1", monkeypatch)} == {host}


@pytest.mark.parametrize("setting", _ENDPOINTS)
def test_an_emulator_is_addressed_by_path(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(setting, "http://127.0.0.1:4566")
    for url in urls("eu-west-1", monkeypatch):
        assert url.startswith("http://127.0.0.1:4566/files/a%20b/%C3%A9?")
