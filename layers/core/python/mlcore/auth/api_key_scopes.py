"""Scopes of API keys: what a key may do at most. Pure functions, because errors here are security
holes.

A scope never adds a right. A requirement is met if the owner of the key meets it and a scope covers
it:

* ``read``: reading whatever the owner may read.
* ``experiment:<id>``: reading and updating one experiment, its runs, traces and logged models.
* ``model:<name>``: creating, reading and updating one registered model or prompt with its versions.
* ``gateway:<endpoint id>``: calling one endpoint of the AI gateway.
* ``sql``: queries of the system tables, with the rows that the owner may read.
* ``scim``: provisioning of users and groups, if the owner is an administrator.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final, NamedTuple

from mlcore.auth.permissions import (
    EDIT,
    EXPERIMENT,
    GATEWAY_ENDPOINT,
    NO_PERMISSIONS,
    PROMPT,
    READ,
    REGISTERED_MODEL,
    USE,
    Permission,
    canonical_experiment_id,
)
from mlcore.auth.requirements import NOT_DENIED, Grants, Requirement
from mlcore.errors import InvalidParameterValue

READING: Final = "read"
SQL: Final = "sql"
SCIM: Final = "scim"
MAX_SCOPES: Final = 20
MAX_SCOPE_BYTES: Final = 2_000
"""Maximum size of all scopes of a key together, because the authorizer's answer contains them."""

_TYPES: Final = {
    "experiment": (EXPERIMENT,),
    "model": (REGISTERED_MODEL, PROMPT),
    "gateway": (GATEWAY_ENDPOINT,),
}
_ACTIONS: Final = {
    EXPERIMENT: {"read", "use", "create", "update"},
    REGISTERED_MODEL: {"read", "use", "create", "update"},
    PROMPT: {"read", "use", "create", "update"},
    GATEWAY_ENDPOINT: {"read", "use"},
}
_LEVELS: Final = {EXPERIMENT: EDIT, REGISTERED_MODEL: EDIT, PROMPT: EDIT, GATEWAY_ENDPOINT: USE}


class KeyLimits(NamedTuple):
    """To which workspace and scopes a user's API key is limited. The authorizer passes it to the
    Lambda functions as text."""

    workspace: str
    """The only workspace in which the key gives any right."""
    scopes: tuple[str, ...]

    def encoded(self) -> str:
        return json.dumps(self, ensure_ascii=False)


def decoded(text: str) -> KeyLimits:
    """Decodes an API key's workspace and scopes from the text of :meth:`KeyLimits.encoded`."""
    workspace, scopes = json.loads(text)
    return KeyLimits(workspace, tuple(scopes))


class ScopeUse:
    """Records, for one request with a scoped API key, whether its policy required a right to read
    or to write that the key's scopes cover (``reads``, ``writes``). If the policy requires no
    right, such as a policy for everybody, a key with scopes may not write."""

    __slots__ = ("owner_is_admin", "reads", "writes")

    def __init__(self, *, owner_is_admin: bool) -> None:
        self.owner_is_admin = owner_is_admin
        self.reads = False
        self.writes = False


class ScopedGrants(Grants):
    """The grants of an API key's owner, limited to the API key's scopes.

    Args:
        owner: the grants of the owner.
        scopes: the scopes of the API key; an empty tuple covers nothing.
        use: records which permission requirements of a request were met.
    """

    __slots__ = ("_covered", "_owner", "_reads_all", "_use")

    def __init__(self, owner: Grants, scopes: Iterable[str], use: ScopeUse) -> None:
        self._owner = owner
        self._use = use
        self._covered: set[tuple[str, str]] = set()
        self._reads_all = False
        for scope in scopes:
            kind, _, name = scope.partition(":")
            self._reads_all = self._reads_all or scope == READING
            self._covered |= {(resource_type, name) for resource_type in _TYPES.get(kind, ())}
        self.administrates = False

    def on(self, resource_type: str, resource_id: str) -> Permission | None:
        return self._owner.on(resource_type, resource_id)

    def named(self, resource_type: str) -> set[str]:
        covered = {name for covered_type, name in self._covered if covered_type == resource_type}
        return self._owner.named(resource_type) | covered

    def effective(self, resource_type: str, resource_id: str) -> Permission:
        """Returns the level of the API key's owner on a resource, lowered to the scopes' level."""
        level = self._owner.effective(resource_type, resource_id)
        if self._covers(resource_type, resource_id):
            limit = _LEVELS[resource_type]
        else:
            limit = READ if self._reads_all else NO_PERMISSIONS
        return Permission(limit.name, *(map(min, level[1:], limit[1:])))

    def meets(self, requirement: Requirement) -> bool:
        action = requirement.action
        covering = [
            resource[0]
            for resource in (requirement[:2], *requirement.inherits)
            if self._covers(resource[0], resource[1])
        ]
        if action == NOT_DENIED:
            is_covered = True
        elif covering:
            is_covered = action in _ACTIONS[covering[0]]
        else:
            is_covered = action == "read" and self._reads_all
        if not is_covered or not self._owner.allow([requirement]):
            return False
        if action == NOT_DENIED:
            # To create a model, its name must not be denied: the scope names it.
            self._use.writes |= requirement.resource_type in (REGISTERED_MODEL, PROMPT) and bool(
                covering
            )
        else:
            self._use.reads = True
            self._use.writes |= action != "read"
        return True

    def _covers(self, resource_type: str, resource_id: str) -> bool:
        if resource_type == EXPERIMENT:
            resource_id = canonical_experiment_id(resource_id)
        return (resource_type, resource_id) in self._covered


def checked(scopes: object) -> tuple[str, ...]:
    """Checks the scopes that a request names for an API key, and returns them in the request's
    order, each once. Raises InvalidParameterValue for a value that is not a list of valid scopes,
    for an empty list, for more than MAX_SCOPES, and for more than MAX_SCOPE_BYTES together."""
    if not isinstance(scopes, list) or not scopes or len(scopes) > MAX_SCOPES:
        raise InvalidParameterValue(
            f"Parameter 'scopes' must be a list of 1 to {MAX_SCOPES} scopes; without it a key may "
            "do all that its owner may."
        )
    checked_scopes = []
    for sent in scopes:
        kind, _, name = sent.partition(":") if isinstance(sent, str) else ("", "", "")
        is_experiment = kind == "experiment"
        scope = f"{kind}:{canonical_experiment_id(name)}" if is_experiment and name else sent
        if scope not in (READING, SQL, SCIM) and not (kind in _TYPES and name and name != "*"):
            raise InvalidParameterValue(
                f"Invalid scope {scope!r}. Valid scopes are: 'read', 'sql', 'scim', "
                "'experiment:<id>', 'model:<name>', 'gateway:<endpoint name or id>'."
            )
        checked_scopes.append(scope)
    if len("".join(checked_scopes).encode()) > MAX_SCOPE_BYTES:
        raise InvalidParameterValue(f"The scopes of a key have at most {MAX_SCOPE_BYTES} bytes.")
    return tuple(dict.fromkeys(checked_scopes))
