"""Creates, updates, lists and deletes secrets: credentials of model providers. They are encrypted
before they are stored, and responses show them masked only."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from gateway import messages as m
from gateway.configuration_updates import require_part, update_configuration
from gateway.credential_checks import check_auth_config, check_secret_value
from mlcore import errors, ids
from mlcore.auth.permissions import GATEWAY_SECRET
from mlcore.entities.gateway import Configuration, Secret
from mlcore.gateway.secret_values import seal
from mlcore.http import Request
from mlcore.limits import gateway as limits
from mlcore.repos.gateway import configuration
from mlcore.responses import gateway as responses


def create_secret(message: m.CreateGatewaySecret, request: Request) -> dict[str, Any]:
    auth_config = check_auth_config(message.auth_config)
    check_secret_value(message.secret_value)
    limits.check_names(secret_name=message.secret_name, provider=message.provider)
    secret_id, now = f"s-{uuid4().hex}", ids.now_ms()
    secret = Secret(
        secret_id=secret_id,
        secret_name=message.secret_name,
        sealed=seal(message.secret_value, secret_id),
        masked=_mask(message.secret_value),
        provider=message.provider or None,
        auth_config=auth_config,
        created_by=message.created_by or None,
        last_updated_by=message.created_by or None,
        created_at=now,
        last_updated_at=now,
    )

    def change(current: Configuration) -> dict[str, Any]:
        if any(other.secret_name == secret.secret_name for other in current.secrets.values()):
            raise errors.ResourceAlreadyExists(
                f"Secret with name '{secret.secret_name}' already exists"
            )
        configuration.write(
            current, puts=[secret], also=request.granting(GATEWAY_SECRET, secret_id)
        )
        return {"secret": responses.secret(secret)}

    return update_configuration(request, change)


def get_secret(message: m.GetGatewaySecretInfo, request: Request) -> dict[str, Any]:
    current = configuration.read(request.workspace)
    return {"secret": responses.secret(_get_secret(current, message.secret_id))}


def update_secret(message: m.UpdateGatewaySecret, request: Request) -> dict[str, Any]:
    """Replaces the values of a gateway secret and its ``auth_config``. If one of the two is omitted
    or empty, it stays. An ``auth_config`` whose only entry is a blank ``api_base`` clears the
    stored one."""
    auth_config = check_auth_config(message.auth_config)
    check_secret_value(message.secret_value)

    def change(current: Configuration) -> dict[str, Any]:
        secret = _get_secret(current, message.secret_id)
        if message.secret_value:
            secret = secret._replace(
                sealed=seal(message.secret_value, secret.secret_id),
                masked=_mask(message.secret_value),
            )
        if message.auth_config:
            secret = secret._replace(auth_config=auth_config)
        secret = secret._replace(
            last_updated_by=message.updated_by or None, last_updated_at=ids.now_ms()
        )
        configuration.write(current, puts=[secret])
        return {"secret": responses.secret(secret)}

    return update_configuration(request, change)


def delete_secret(message: m.DeleteGatewaySecret, request: Request) -> dict[str, Any]:
    """Deletes a secret. Model definitions that use it remain, and can be given another secret."""

    def change(current: Configuration) -> dict[str, Any]:
        secret = _get_secret(current, message.secret_id)
        grants = request.leaving_grants(GATEWAY_SECRET, secret.secret_id)
        configuration.write(current, deletes=[secret], also=grants)
        return {}

    return update_configuration(request, change)


def list_secrets(message: m.ListGatewaySecretInfos, request: Request) -> dict[str, Any]:
    readable = request.may_read(GATEWAY_SECRET)
    shown = [
        responses.secret(secret)
        for secret in configuration.read(request.workspace).secrets.values()
        if readable(secret.secret_id) and message.provider in ("", secret.provider)
    ]
    return {"secrets": shown} if shown else {}


def secrets_config(message: m.EmptyRequest, request: Request) -> dict[str, Any]:
    """Returns a constant: AWS KMS (on a laptop a file) holds the encryption key, so secrets are
    always available and MLflow's default passphrase is never used."""
    return {"secrets_available": True, "using_default_passphrase": False}


def _get_secret(current: Configuration, secret_id: str) -> Secret:
    return require_part(current.secrets, secret_id, "GatewaySecret", "secret_id")


def _mask(secret_value: dict[str, str]) -> dict[str, str]:
    return {key: limits.mask(value) for key, value in secret_value.items()}
