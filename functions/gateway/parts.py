"""What all parts of the gateway's configuration share: who made them, how they are found and
changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from mlcore import errors
from mlcore.entities.gateway import Configuration, Endpoint
from mlcore.http import Request
from mlcore.repos.gateway import configuration
from mlcore.settle import settle

T = TypeVar("T")


def there(parts: Mapping[str, T], part_id: str, noun: str, field: str) -> T:
    """A part by its id. Raises ResourceDoesNotExist."""
    part = parts.get(part_id)
    if part is None:
        raise missing(noun, **{field: part_id})
    return part


def missing(noun: str, **named: str) -> errors.ResourceDoesNotExist:
    said = ", ".join(f"{field}='{value}'" for field, value in named.items())
    return errors.ResourceDoesNotExist(f"{noun} not found ({said})")


def endpoint(known: Configuration, endpoint_id: str, noun: str = "GatewayEndpoint") -> Endpoint:
    """Raises ResourceDoesNotExist."""
    return there(known.endpoints, endpoint_id, noun, "endpoint_id")


def settled(request: Request, change: Callable[[Configuration], T]) -> T:
    """What ``change`` makes of the workspace's configuration, which it reads, and writes with
    :func:`mlcore.repos.gateway.configuration.write`; anew when somebody else was first."""
    return settle(
        "gateway's configuration", lambda: change(configuration.to_change(request.workspace))
    )
