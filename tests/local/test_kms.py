"""The runner's key for secrets, in its own process: as KMS, for its functions."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from local.aws.endpoint import AwsEndpoint
from local.aws.kms import Kms, KmsClient
from mlcore import secrets
from mlcore.errors import (
    InsufficientStorage,
    InternalError,
    MlflowError,
    RequestLimitExceeded,
    TemporarilyUnavailable,
)

CONTEXT = {"gateway_secret_id": "s"}


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("SECRETS_KEY_ID", "key")
    # Whoever calls over the network reaches nobody.
    monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", "http://127.0.0.1:9")
    secrets.register(KmsClient(Kms(tmp_path / "key")))
    yield tmp_path / "key"
    secrets.register(None)


@pytest.fixture(params=["in the process", "over the loopback"])
def faulty_key(
    key: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """The key's file, for a function of the runner's process or of another one: the answers are the
    same."""
    endpoint = AwsEndpoint(Kms(key).operations())
    endpoint.start()
    for name, value in (
        ("AWS_ENDPOINT_URL_KMS", endpoint.url),
        ("AWS_DEFAULT_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "x"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
    ):
        monkeypatch.setenv(name, value)
    if request.param == "over the loopback":
        secrets.register(None)
    secrets._client.cache_clear()
    yield key
    secrets._client.cache_clear()
    endpoint.stop()


def failing(code: int) -> Callable[..., NoReturn]:
    def fail(*_: object, **__: object) -> NoReturn:
        raise OSError(code, os.strerror(code))

    return fail


def test_secrets_are_sealed_without_a_request(key: Path) -> None:
    sealed = secrets.seal("sk-live", CONTEXT)
    assert "sk-live" not in sealed
    assert secrets.open_sealed(sealed, CONTEXT) == "sk-live"
    assert key.stat().st_mode & 0o077 == 0


def test_another_context_or_key_is_refused(key: Path) -> None:
    sealed = secrets.seal("sk-live", CONTEXT)
    with pytest.raises(InternalError, match="refuses"):
        secrets.open_sealed(sealed, {"gateway_secret_id": "other"})
    key.unlink()
    with pytest.raises(InternalError, match="refuses"):
        secrets.open_sealed(sealed, CONTEXT)


@pytest.mark.parametrize(
    ("code", "error", "status"),
    [
        (errno.ENOSPC, InsufficientStorage, 507),
        (errno.EROFS, InsufficientStorage, 507),
        (errno.EIO, RequestLimitExceeded, 429),
    ],
)
def test_a_first_secret_that_the_disk_does_not_take_is_told(
    faulty_key: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    error: type[MlflowError],
    status: int,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing(code))
        with pytest.raises(error) as refused:
            secrets.seal("sk-live", CONTEXT)
    assert refused.value.status == status
    assert list(faulty_key.parent.iterdir()) == []
    sealed = secrets.seal("sk-live", CONTEXT)
    assert secrets.open_sealed(sealed, CONTEXT) == "sk-live"


def test_a_key_that_cannot_be_read_is_asked_for_later(
    faulty_key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed = secrets.seal("sk-live", CONTEXT)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", failing(errno.EACCES))
        with pytest.raises(RequestLimitExceeded):
            secrets.seal("sk-live", CONTEXT)
        with pytest.raises(TemporarilyUnavailable):
            secrets.open_sealed(sealed, CONTEXT)
    assert secrets.open_sealed(sealed, CONTEXT) == "sk-live"


@pytest.mark.parametrize("length", [0, 16, 31])
def test_an_incomplete_key_is_refused_and_stays(faulty_key: Path, length: int) -> None:
    """AES would take 16 bytes for a key."""
    sealed = secrets.seal("sk-live", CONTEXT)
    whole = faulty_key.read_bytes()
    faulty_key.write_bytes(whole[:length])
    with pytest.raises(InternalError, match="refuses"):
        secrets.seal("sk-live", CONTEXT)
    with pytest.raises(InternalError, match="refuses"):
        secrets.open_sealed(sealed, CONTEXT)
    assert faulty_key.read_bytes() == whole[:length]
    faulty_key.write_bytes(whole)
    assert secrets.open_sealed(sealed, CONTEXT) == "sk-live"
