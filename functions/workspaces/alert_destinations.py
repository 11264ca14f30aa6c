"""The destinations of an alert, as requests name them: checked, and encrypted for storage."""

from __future__ import annotations

from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

from mlcore.entities.alerts import DESTINATION_TYPES, SNS, WEBHOOK, Alert, AlertDestination
from mlcore.errors import InvalidParameterValue
from mlcore.limits.alerts import MAX_DESTINATIONS, MAX_SECRET_LENGTH, MAX_URL_LENGTH
from mlcore.webhooks import addresses, destination_values
from mlcore.webhooks.destination_values import Address

_FIELDS: Final = frozenset({"destination_id", "type", "url", "secret", "host"})


class WantedDestination(NamedTuple):
    """A destination of an alert that a request names."""

    destination_id: str
    """The id of a stored destination that is kept; empty for a new destination."""
    kind: str
    address: Address


def parse(sent: Any, *, tells_addresses: bool) -> list[WantedDestination]:
    """Parses the destinations of an alert in a request.

    Args:
        tells_addresses: whether an error may contain the IP address of a host name.

    Raises:
        InvalidParameterValue: ``sent`` is no list or too long, or a destination is malformed or has
            a URL that is not allowed for webhooks.
    """
    if not isinstance(sent, list) or len(sent) > MAX_DESTINATIONS:
        raise InvalidParameterValue(
            f"'destinations' must be a list of at most {MAX_DESTINATIONS} objects with 'type', "
            "'url' and 'secret'."
        )
    wanted = list(map(_parse_one, sent))
    for entry in wanted:
        if entry.address.url:
            _check_address(entry.address, tells_addresses)
    return wanted


def are_stored(wanted: list[WantedDestination], alert: Alert) -> bool:
    """Whether the alert's stored destinations are exactly these, in this order."""
    if len(wanted) != len(alert.destinations):
        return False
    return all(
        entry.destination_id == stored.destination_id
        or (not entry.destination_id and _is_equal(entry, stored, alert.workspace))
        for entry, stored in zip(wanted, alert.destinations, strict=True)
    )


def seal(wanted: list[WantedDestination], alert: Alert) -> tuple[AlertDestination, ...]:
    """Returns the destinations of an alert in stored form, with encrypted secrets. A destination
    that the request names by its id stays as it is stored. Raises InvalidParameterValue if the
    alert has no destination with the id, or the id is named twice."""
    stored = {destination.destination_id: destination for destination in alert.destinations}
    named = [entry.destination_id for entry in wanted if entry.destination_id]
    if len(set(named)) < len(named) or not set(named) <= stored.keys():
        raise InvalidParameterValue(
            "'destination_id' must be the id of a destination of the alert."
        )
    return tuple(
        stored[entry.destination_id] if entry.destination_id else _sealed(entry, alert.workspace)
        for entry in wanted
    )


def _parse_one(sent: Any) -> WantedDestination:
    if not isinstance(sent, dict) or sent.keys() - _FIELDS:
        raise InvalidParameterValue(
            "A destination is an object with 'type', 'url' and 'secret', or with the "
            "'destination_id' of one that is kept."
        )
    texts = {name: value or "" for name, value in sent.items()}
    if not all(isinstance(value, str) for value in texts.values()):
        raise InvalidParameterValue("The fields of a destination must be strings.")
    kind, url, secret = (texts.get(name, "") for name in ("type", "url", "secret"))
    if texts.get("destination_id"):
        if url or secret:
            raise InvalidParameterValue(
                "A destination that is kept has no 'url' and no 'secret'. Omit 'destination_id' "
                "to replace it."
            )
        return WantedDestination(texts["destination_id"], kind, Address("", ""))
    if kind not in DESTINATION_TYPES:
        raise InvalidParameterValue(
            f"The type of a destination is one of: {', '.join(DESTINATION_TYPES)}."
        )
    if (kind == SNS) == bool(url) or (secret and kind != WEBHOOK):
        raise InvalidParameterValue(
            "A destination of type slack has a 'url', one of type webhook a 'url' and optionally "
            "a 'secret', one of type sns neither."
        )
    return WantedDestination("", kind, Address(url, secret))


def _check_address(address: Address, tells_addresses: bool) -> None:
    if len(address.url) > MAX_URL_LENGTH or len(address.secret) > MAX_SECRET_LENGTH:
        raise InvalidParameterValue(
            f"The URL of a destination has at most {MAX_URL_LENGTH} characters, the secret "
            f"{MAX_SECRET_LENGTH}."
        )
    try:
        addresses.check_url(address.url)
    except InvalidParameterValue:
        if tells_addresses:
            raise
        # Callers who may only query must not find out which private host names exist.
        raise InvalidParameterValue(
            "The URL of a destination must have an allowed scheme and lead to the public internet."
        ) from None


def _is_equal(wanted: WantedDestination, stored: AlertDestination, workspace: str) -> bool:
    if wanted.kind != stored.kind:
        return False
    if stored.kind == SNS:
        return True
    return destination_values.open_address(stored, workspace) == wanted.address


def _sealed(wanted: WantedDestination, workspace: str) -> AlertDestination:
    destination_id = str(uuid4())
    if wanted.kind == SNS:
        return AlertDestination(destination_id, wanted.kind)
    host = urlsplit(wanted.address.url).hostname or ""
    sealed = destination_values.seal(wanted.address, workspace, destination_id)
    return AlertDestination(destination_id, wanted.kind, host, sealed)
