"""The settings ``sign_in_issuers`` (OpenID Connect issuers in addition to the deployment's own) and
``sign_in_roles`` (which roles users get from the claims of their tokens)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlcore.db.expression import ConditionExpression
from mlcore.db.table import Check, table
from mlcore.limits.sign_in import ISSUERS, ROLES
from mlcore.models.settings import Config
from mlcore.repos.settings.cached_setting import Setting

_issuers: Setting[Mapping[str, Mapping[str, str]]] = Setting(ISSUERS, lambda value: value or {})
_roles: Setting[Sequence[Mapping[str, Any]]] = Setting(ROLES, lambda value: value or ())


def issuers() -> Mapping[str, Mapping[str, Any]]:
    """Returns the additional OpenID Connect issuers that the setting ``sign_in_issuers`` names, by
    name; one GetItem per minute and process."""
    return _issuers.current()


def role_rules() -> Sequence[Mapping[str, Any]]:
    """Returns the rules of the setting ``sign_in_roles``, which assign roles by claims, as the
    table has them now; one GetItem. They are not cached: a group that lost a right must not get it
    again."""
    return _roles.read()


def role_rules_to_apply() -> tuple[Sequence[Mapping[str, Any]], Check]:
    """Returns the rules like :func:`role_rules`, and a check for the transaction that writes what
    follows from them: that they are still the same."""
    item = table.get(_roles.key)
    unchanged = ConditionExpression()
    if item is None:
        unchanged.require_absent(Config.PK)
    else:
        unchanged.require_equal(Config.value, Config.of(item).value)
    return _roles.learn(item), Check(_roles.key, unchanged)
