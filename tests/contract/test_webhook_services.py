"""The layer's SQS and KMS against an emulator of both that is not ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from mlcore import queues, secrets
from mlcore.errors import InternalError, InvalidParameterValue, TemporarilyUnavailable
from tests import ministack


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with ministack.running(tmp_path) as url:
        for name in ("AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_KMS"):
            monkeypatch.setenv(name, url)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "x")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        queues._client.cache_clear()
        secrets._client.cache_clear()
        yield botocore.session.get_session()
        queues._client().close()
        secrets._client().close()
        queues._client.cache_clear()
        secrets._client.cache_clear()


def test_queues_and_secrets(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sqs, kms = session.create_client("sqs"), session.create_client("kms")
    url = sqs.create_queue(QueueName="work")["QueueUrl"]
    wanted = ["x" * number for number in range(1, 25)] + ["y" * 200_000, "z" * 100_000]
    queues.send(url, [queues.QueueMessage(body, f"group-{len(body)}") for body in wanted])
    got: list[dict[str, Any]] = []
    while len(got) < len(wanted):
        page = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
        got += page
    assert sorted(message["Body"] for message in got) == sorted(wanted)
    queues.postpone(url, got[0]["ReceiptHandle"], 0.0)
    [again] = sqs.receive_message(QueueUrl=url)["Messages"]
    assert again["MessageId"] == got[0]["MessageId"]
    with pytest.raises(TemporarilyUnavailable):
        queues.send(f"{url}-missing", [queues.QueueMessage("x", "g")])

    monkeypatch.setenv("SECRETS_KEY_ID", kms.create_key()["KeyMetadata"]["Arn"])
    sealed = secrets.seal("s3cr€t", {"webhook_id": "a"})
    assert "s3cr" not in sealed
    assert secrets.open_sealed(sealed, {"webhook_id": "a"}) == "s3cr€t"
    with pytest.raises(InternalError):
        secrets.open_sealed(sealed, {"webhook_id": "b"})
    with pytest.raises(InvalidParameterValue):
        secrets.seal("x" * 4097, {})
    sqs.close()
    kms.close()
