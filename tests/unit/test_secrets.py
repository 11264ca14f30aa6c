"""What a caller is told when KMS is away or refuses."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from mlcore import errors, secrets

AWAY = (
    EndpointConnectionError(endpoint_url="https://kms"),
    ClientError({"Error": {"Code": "ThrottlingException"}}, "Encrypt"),
    ClientError({"Error": {"Code": "KMSInternalException"}}, "Encrypt"),
)
REFUSED = ClientError({"Error": {"Code": "AccessDeniedException"}}, "Encrypt")


class Client:
    def __init__(self, error: Exception) -> None:
        self._error = error

    def encrypt(self, **_: Any) -> Any:
        raise self._error

    decrypt = encrypt


def _answer(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    monkeypatch.setenv("SECRETS_KEY_ID", "key")
    monkeypatch.setattr(secrets, "_client", lambda: Client(error))


@pytest.mark.parametrize("error", AWAY, ids=str)
def test_a_secret_that_is_not_stored_may_be_sent_again(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    _answer(monkeypatch, error)
    with pytest.raises(errors.RequestLimitExceeded):
        secrets.seal("secret", {})
    with pytest.raises(errors.TemporarilyUnavailable):
        secrets.open_sealed("c2VhbGVk", {})


def test_a_key_that_refuses_is_no_reason_to_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    _answer(monkeypatch, REFUSED)
    with pytest.raises(errors.InternalError):
        secrets.seal("secret", {})
