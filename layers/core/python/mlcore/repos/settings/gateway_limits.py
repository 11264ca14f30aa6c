"""Reads the setting ``gateway_limits``, the limits on calls through the AI gateway."""

from __future__ import annotations

from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.entities.gateway_limits import SETTING, GatewayLimits, parsed
from mlcore.repos.settings.cached_setting import Setting

_limits: Setting[GatewayLimits] = Setting(SETTING, lambda value: parsed(value or {}))


def current() -> GatewayLimits:
    """Returns the limits of calls through the AI gateway that the deployment sets; one GetItem per
    minute and process."""
    return _limits.current()


def key() -> Key:
    """Returns the key of the item with the limits of AI gateway calls, for a caller that reads it
    together with other items and then calls :func:`learn`."""
    return _limits.key


def is_read() -> bool:
    """Whether the limits of AI gateway calls are cached: :func:`current` then needs no request."""
    return _limits.remembered() is not None


def learn(item: Raw | None) -> None:
    """Caches the limits of AI gateway calls from the setting's item that a caller has read at
    :func:`key`; None if there is no such item."""
    _limits.learn(item)
