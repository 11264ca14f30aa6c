"""Reads and changes the settings of the deployment. These routes are not MLflow's, and only for
administrators."""

from __future__ import annotations

from typing import Any

from mlcore.http import Request
from mlcore.limits import sign_in
from mlcore.repos.settings import stored_settings
from mlcore.repos.users import claim_roles
from workspaces import messages as m


def list_config(message: m.ListConfig, request: Request) -> dict[str, Any]:
    return {"config": stored_settings.find_all()}


def get_config(message: m.GetConfig, request: Request) -> dict[str, Any]:
    return {"key": message.key, "value": stored_settings.get(message.key)}


def put_config(message: m.PutConfig, request: Request) -> dict[str, Any]:
    """Sets the value of a setting. Running processes read it within a minute."""
    stored_settings.put(message.key, message.value)
    _apply(message.key)
    return {"key": message.key, "value": message.value}


def delete_config(message: m.GetConfig, request: Request) -> dict[str, Any]:
    """Resets a setting of the deployment to its default."""
    stored_settings.delete(message.key)
    _apply(message.key)
    return {}


def _apply(key: str) -> None:
    """Applies a changed setting to what is stored, if it has an effect there."""
    if key == sign_in.ROLES:
        claim_roles.apply_to_groups()
