"""Stores in this process, which answer DynamoDB's operations without a network.

The layer has none. A program that has one registers it for a scheme of endpoints before it asks
:func:`mlcore.db.client.client` for the client.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol


class TableClient(Protocol):
    """Calls DynamoDB's operations; see :class:`mlcore.db.transport.Transport`."""

    @property
    def endpoint(self) -> str:
        """The URL that the client was made for."""

    @property
    def is_embedded(self) -> bool:
        """Whether a call is executed by the thread that makes it, so that threads gain nothing."""

    def call(self, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """Executes an operation and returns its answer."""

    def close(self) -> None:
        """Closes what is open; a further call opens it again."""


_makers: Final[dict[str, Callable[[str], TableClient]]] = {}


def register(scheme: str, make: Callable[[str], TableClient]) -> None:
    """Makes endpoints with this scheme, such as ``sqlite``, be served by what ``make`` returns for
    the endpoint."""
    _makers[scheme] = make


def is_embedded(endpoint: str) -> bool:
    """Whether an endpoint is that of a store, and of no service on a network."""
    return bool(endpoint) and endpoint.partition("://")[0] not in ("http", "https")


def client_for(endpoint: str) -> TableClient:
    """Returns a new client of a store.

    Raises:
        ValueError: nobody has registered the endpoint's scheme.
    """
    scheme = endpoint.partition("://")[0]
    if scheme not in _makers:
        raise ValueError(f"nothing in this process opens the table's endpoint {endpoint}")
    return _makers[scheme](endpoint)
