"""Finds parts (secrets, model definitions, endpoints, guardrails) in a workspace's gateway
configuration, and changes the configuration with optimistic writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from mlcore import errors
from mlcore.entities.gateway import Configuration, Endpoint
from mlcore.http import Request
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos.gateway import configuration

T = TypeVar("T")


def require_part(parts: Mapping[str, T], part_id: str, noun: str, field: str) -> T:
    """Returns the secret, model definition, endpoint or guardrail with this id from ``parts``.
    Raises ResourceDoesNotExist if there is none.

    Args:
        parts: the gateway's configured objects of one kind, by id.
        noun: the kind, for the error message.
        field: the name of the id's field, for the error message.
    """
    part = parts.get(part_id)
    if part is None:
        raise not_found(noun, **{field: part_id})
    return part


def not_found(noun: str, **named: str) -> errors.ResourceDoesNotExist:
    criteria = ", ".join(f"{field}='{value}'" for field, value in named.items())
    return errors.ResourceDoesNotExist(f"{noun} not found ({criteria})")


def require_endpoint(
    current: Configuration, endpoint_id: str, noun: str = "GatewayEndpoint"
) -> Endpoint:
    """Returns the gateway endpoint with this id. Raises ResourceDoesNotExist if the configuration
    has none."""
    return require_part(current.endpoints, endpoint_id, noun, "endpoint_id")


def update_configuration(request: Request, change: Callable[[Configuration], T]) -> T:
    """Reads the gateway's configuration of the workspace and calls ``change`` with it. ``change``
    writes the new configuration by :func:`mlcore.repos.gateway.configuration.write`. After a
    concurrent write both steps are repeated. Returns the result of ``change``."""
    return retry_on_conflict(
        "gateway's configuration", lambda: change(configuration.to_change(request.workspace))
    )
