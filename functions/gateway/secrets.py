"""The rules of secrets: credentials of providers, which are sealed at once and never told."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from gateway import messages as m
from gateway.credentials import check_secret_value, checked_auth_config
from gateway.parts import settled, there
from mlcore import errors, ids
from mlcore.auth.permissions import GATEWAY_SECRET
from mlcore.entities.gateway import Configuration, Secret
from mlcore.gateway.sealing import sealed
from mlcore.http import Request
from mlcore.limits import gateway as limits
from mlcore.repos.gateway import configuration
from mlcore.responses import gateway as responses


def create_secret(message: m.CreateGatewaySecret, request: Request) -> dict[str, Any]:
    auth_config = checked_auth_config(message.auth_config)
    check_secret_value(message.secret_value)
    secret_id, now = f"s-{uuid4().hex}", ids.now_ms()
    made = Secret(
        secret_id=secret_id,
        secret_name=message.secret_name,
        sealed=sealed(message.secret_value, secret_id),
        masked=_masked(message.secret_value),
        provider=message.provider or None,
        auth_config=auth_config,
        created_by=message.created_by or None,
        last_updated_by=message.created_by or None,
        created_at=now,
        last_updated_at=now,
    )

    def change(known: Configuration) -> dict[str, Any]:
        if any(secret.secret_name == made.secret_name for secret in known.secrets.values()):
            raise errors.ResourceAlreadyExists(
                f"Secret with name '{made.secret_name}' already exists"
            )
        configuration.write(known, puts=[made], also=request.granting(GATEWAY_SECRET, secret_id))
        return {"secret": responses.secret(made)}

    return settled(request, change)


def get_secret(message: m.GetGatewaySecretInfo, request: Request) -> dict[str, Any]:
    known = configuration.read(request.workspace)
    return {"secret": responses.secret(_there(known, message.secret_id))}


def update_secret(message: m.UpdateGatewaySecret, request: Request) -> dict[str, Any]:
    """Without values they stay; an ``auth_config`` of nothing but blanks clears what was there."""
    auth_config = checked_auth_config(message.auth_config)
    check_secret_value(message.secret_value)

    def change(known: Configuration) -> dict[str, Any]:
        secret = _there(known, message.secret_id)
        if message.secret_value:
            secret = secret._replace(
                sealed=sealed(message.secret_value, secret.secret_id),
                masked=_masked(message.secret_value),
            )
        if message.auth_config:
            secret = secret._replace(auth_config=auth_config)
        secret = secret._replace(
            last_updated_by=message.updated_by or None, last_updated_at=ids.now_ms()
        )
        configuration.write(known, puts=[secret])
        return {"secret": responses.secret(secret)}

    return settled(request, change)


def delete_secret(message: m.DeleteGatewaySecret, request: Request) -> dict[str, Any]:
    """Models that were called with it stay, and can be called with another."""

    def change(known: Configuration) -> dict[str, Any]:
        secret = _there(known, message.secret_id)
        gone = request.leaving_grants(GATEWAY_SECRET, secret.secret_id)
        configuration.write(known, deletes=[secret], also=gone)
        return {}

    return settled(request, change)


def list_secrets(message: m.ListGatewaySecretInfos, request: Request) -> dict[str, Any]:
    readable = request.may_read(GATEWAY_SECRET)
    shown = [
        responses.secret(secret)
        for secret in configuration.read(request.workspace).secrets.values()
        if readable(secret.secret_id) and message.provider in ("", secret.provider)
    ]
    return {"secrets": shown} if shown else {}


def secrets_config(message: m.Nothing, request: Request) -> dict[str, Any]:
    """Keys are KMS's, so there is no passphrase that could be the default one."""
    return {"secrets_available": True, "using_default_passphrase": False}


def _there(known: Configuration, secret_id: str) -> Secret:
    return there(known.secrets, secret_id, "GatewaySecret", "secret_id")


def _masked(secret_value: dict[str, str]) -> dict[str, str]:
    return {key: limits.masked(value) for key, value in secret_value.items()}
