"""The setting ``gateway_limits``: how much may be called through the AI gateway."""

from __future__ import annotations

from mlcore.entities.gateway_limits import SETTING, GatewayLimits, parsed
from mlcore.repos.settings.setting import Setting

_limits: Setting[GatewayLimits] = Setting(SETTING, lambda value: parsed(value or {}))


def current() -> GatewayLimits:
    """Returns the limits of the deployment; one GetItem per minute and process."""
    return _limits.current()
