"""The credentials that a process has of its own."""

from __future__ import annotations

import pytest

from mlcore import aws_clients
from mlcore.db.signature import Credentials


@pytest.mark.parametrize("token", [None, "t0ken"])
def test_own_keys_are_those_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, token: str | None
) -> None:
    """As Lambda tells a function those of its role."""
    for variable in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ASIAROLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    if token is not None:
        monkeypatch.setenv("AWS_SESSION_TOKEN", token)
    aws_clients._session.cache_clear()
    try:
        assert aws_clients.process_credentials() == Credentials("ASIAROLE", "secret", token)
    finally:
        aws_clients._session.cache_clear()
