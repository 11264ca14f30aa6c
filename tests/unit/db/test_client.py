"""Where DynamoDB is, in every region that botocore knows."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import botocore.httpsession
import botocore.session
import pytest

from mlcore.db import client

SESSION = botocore.session.get_session()
SERVICES = ("dynamodb", "kms", "sqs")


@pytest.mark.parametrize("service", SERVICES)
def test_the_endpoint_is_botocores(monkeypatch: pytest.MonkeyPatch, service: str) -> None:
    own = [f"AWS_ENDPOINT_URL_{each.upper()}" for each in SERVICES]
    for name in ("AWS_ENDPOINT_URL", *own, *client._SPECIAL_ENDPOINTS):
        monkeypatch.delenv(name, raising=False)
    regions = [
        region
        for partition in SESSION.get_available_partitions()
        for region in SESSION.get_available_regions(service, partition)
    ]
    assert len(regions) > 30
    for region in regions:
        theirs = SESSION.create_client(
            service, region_name=region, aws_access_key_id="a", aws_secret_access_key="b"
        )
        assert client._endpoint(SESSION, region, service) == theirs.meta.endpoint_url


@pytest.mark.parametrize("service", SERVICES)
def test_each_service_may_be_elsewhere(monkeypatch: pytest.MonkeyPatch, service: str) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://localhost:1")
    monkeypatch.setenv(f"AWS_ENDPOINT_URL_{service.upper()}", "http://localhost:2/of/it")
    results = {each: client._endpoint(None, "eu-west-1", each) for each in SERVICES}
    expected = dict.fromkeys(SERVICES, "http://localhost:1")
    assert results == {**expected, service: "http://localhost:2/of/it"}


def test_the_sovereign_cloud_has_a_suffix_of_its_own() -> None:
    endpoint = client._endpoint(SESSION, "eusc-de-east-1", "dynamodb")
    assert endpoint == "https://dynamodb.eusc-de-east-1.amazonaws.eu"


VALUES = {
    "AWS_DEFAULT_REGION": (None, "", "eu-west-1"),
    "AWS_ACCESS_KEY_ID": (None, "", "key"),
    "AWS_SECRET_ACCESS_KEY": ("secret",),
    "AWS_SESSION_TOKEN": (None, "", "token"),
    "AWS_SECURITY_TOKEN": (None, "older"),
    "AWS_ENDPOINT_URL_DYNAMODB": (None, "http://127.0.0.1:8000"),
    "AWS_DEFAULT_PROFILE": (None, "other"),
}


@pytest.mark.parametrize("given", list(itertools.product(*VALUES.values())))
def test_the_environment_says_what_botocore_would_find(
    given: tuple[str | None, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [variable for variable in os.environ if variable.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in zip(VALUES, given, strict=True):
        if value is not None:
            monkeypatch.setenv(name, value)
    profile = "[profile other]\nregion = sa-east-1\n"
    keys = "[other]\naws_access_key_id = filed\naws_secret_access_key = filed\n"
    for variable, text in (
        ("AWS_CONFIG_FILE", profile),
        ("AWS_SHARED_CREDENTIALS_FILE", keys),
    ):
        (tmp_path / variable).write_text(text)
        monkeypatch.setenv(variable, str(tmp_path / variable))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    of_environment = client._from_environment("dynamodb")
    if of_environment is None:
        assert "other" in given or "" in given or None in given[:2]
        return
    region, endpoint, keys_of_now = client._from_botocore("dynamodb")
    assert of_environment[:2] == (region, endpoint)
    assert of_environment[2]() == keys_of_now()


def test_botocores_authorities_are_trusted() -> None:
    assert str(client._AUTHORITIES) == botocore.httpsession.DEFAULT_CA_BUNDLE
