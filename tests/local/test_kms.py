"""The runner's key for secrets, in its own process: as KMS, for its functions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from local.aws.kms import Kms, KmsClient
from mlcore import secrets
from mlcore.errors import InternalError

CONTEXT = {"gateway_secret_id": "s"}


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("SECRETS_KEY_ID", "key")
    # Whoever calls over the network reaches nobody.
    monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", "http://127.0.0.1:9")
    secrets.register(KmsClient(Kms(tmp_path / "key")))
    yield tmp_path / "key"
    secrets.register(None)


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
