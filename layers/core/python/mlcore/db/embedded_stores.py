"""Registers stores that answer DynamoDB's operations in this process, without a network.

The package ``mlcore`` contains no such store. A program that has one registers it for a scheme of
endpoints before it asks :func:`mlcore.db.client.client` for the client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol


class TableClient(Protocol):
    """A client that executes DynamoDB's operations, in this process or over the network
    (:class:`mlcore.db.transport.Transport`)."""

    @property
    def endpoint(self) -> str:
        """The URL of DynamoDB, or of the store in its place, that this client calls."""

    @property
    def is_embedded(self) -> bool:
        """Whether the thread that makes a call also executes it, so that more threads would not be
        faster."""

    def call(self, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """Executes an operation of DynamoDB, such as ``PutItem``, and returns its answer."""

    def close(self) -> None:
        """Closes open connections and files; a further call opens them again."""


_makers: Final[dict[str, Callable[[str], TableClient]]] = {}


def register(scheme: str, make: Callable[[str], TableClient]) -> None:
    """Registers a store in DynamoDB's place, for endpoints with this URL scheme, such as
    ``sqlite``. ``make`` takes the endpoint and returns a client of the store."""
    _makers[scheme] = make


def is_embedded(endpoint: str) -> bool:
    """Whether a DynamoDB endpoint URL names a store in this process, not a service on a network."""
    return bool(endpoint) and endpoint.partition("://")[0] not in ("http", "https")


def client_for(endpoint: str) -> TableClient:
    """Returns a new client of the store, used in place of DynamoDB, for ``endpoint``'s URL scheme.

    Raises:
        ValueError: no store is registered for the scheme.
    """
    scheme = endpoint.partition("://")[0]
    if scheme not in _makers:
        raise ValueError(f"nothing in this process opens the table's endpoint {endpoint}")
    return _makers[scheme](endpoint)
