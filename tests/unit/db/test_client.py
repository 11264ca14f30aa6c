"""Where DynamoDB is, in every region that botocore knows."""

from __future__ import annotations

import botocore.session
import pytest

from mlcore.db import client

SESSION = botocore.session.get_session()
REGIONS = [
    region
    for partition in SESSION.get_available_partitions()
    for region in SESSION.get_available_regions("dynamodb", partition)
]


def test_the_endpoint_is_botocores(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB", *client._SPECIAL_ENDPOINTS):
        monkeypatch.delenv(name, raising=False)
    assert len(REGIONS) > 30
    for region in REGIONS:
        theirs = SESSION.create_client(
            "dynamodb", region_name=region, aws_access_key_id="a", aws_secret_access_key="b"
        )
        assert client._endpoint(SESSION, region) == theirs.meta.endpoint_url


def test_the_sovereign_cloud_has_a_suffix_of_its_own() -> None:
    found = client._endpoint(SESSION, "eusc-de-east-1")
    assert found == "https://dynamodb.eusc-de-east-1.amazonaws.eu"
