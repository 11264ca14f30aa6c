"""Signatures equal those of botocore, which AWS accepts."""

from __future__ import annotations

import datetime
from unittest.mock import patch

import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotocoreCredentials
from hypothesis import given
from hypothesis import strategies as st

from mlcore.db.signature import Credentials, Signer

TEXT = st.text("abcXYZ0189+/=", min_size=1, max_size=40)
NOW = st.datetimes(datetime.datetime(2001, 1, 1), datetime.datetime(2099, 12, 31))


@given(
    TEXT,
    TEXT,
    st.none() | TEXT,
    st.binary(max_size=60),
    st.sampled_from(["us-east-1", "cn-north-1"]),
    st.sampled_from(["GetItem", "Query"]),
    NOW,
)
def test_signs_as_botocore_does(
    access: str,
    secret: str,
    token: str | None,
    body: bytes,
    region: str,
    target: str,
    now: datetime.datetime,
) -> None:
    now = now.replace(microsecond=0)
    headers = {
        "Host": "dynamodb.example.com:8000",
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Target": f"DynamoDB_20120810.{target}",
    }
    request = AWSRequest("POST", "http://dynamodb.example.com:8000/", headers=headers, data=body)
    with patch("botocore.auth.get_current_datetime", return_value=now):
        botocore.auth.SigV4Auth(
            BotocoreCredentials(access, secret, token), "dynamodb", region
        ).add_auth(request)
    moment = now.replace(tzinfo=datetime.UTC).timestamp()
    Signer("dynamodb", region).sign(Credentials(access, secret, token), headers, body, moment)
    assert headers["Authorization"] == request.headers["Authorization"]
