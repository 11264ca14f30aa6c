"""The routes of SCIM, below ``/scim/v2``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final

from mlcore.http import PlainRoute, Request, Response
from users.scim import discovery, groups, users
from users.scim.messages import ScimRequest, parse

_PREFIX: Final = "/scim/v2"

Answer = Callable[[ScimRequest, Request], Response]


def _route(method: str, path: str, function: Answer, cost: int | None = None) -> PlainRoute:
    return PlainRoute(
        method,
        _PREFIX + path,
        parse,
        _answering(function),
        "provisioning.provision",
        since="",
        cost=cost,
    )


def _answering(function: Answer) -> Answer:
    """Wraps a function so that it raises the error in a malformed request. Callers without the
    right were refused before, so they do not see the error."""

    @functools.wraps(function)
    def answer(message: ScimRequest, request: Request) -> Response:
        if message.problem is not None:
            raise message.problem
        return function(message, request)

    return answer


PLAIN_ROUTES: Final = (
    _route("GET", "/ServiceProviderConfig", discovery.get_configuration, 0),
    _route("GET", "/ResourceTypes", discovery.list_types, 0),
    _route("GET", "/ResourceTypes/{scim_id}", discovery.get_type),
    _route("GET", "/Schemas", discovery.list_schemas, 0),
    _route("GET", "/Schemas/{scim_id}", discovery.get_schema),
    _route("POST", "/Users", users.create_user, 3),
    _route("GET", "/Users", users.list_users, 2),
    _route("GET", "/Users/{scim_id}", users.get_user, 1),
    _route("PUT", "/Users/{scim_id}", users.replace_user, 3),
    _route("PATCH", "/Users/{scim_id}", users.patch_user, 3),
    _route("DELETE", "/Users/{scim_id}", users.delete_user, 9),
    _route("POST", "/Groups", groups.create_group, 9),
    _route("GET", "/Groups", groups.list_groups, 2),
    _route("GET", "/Groups/{group_id}", groups.get_group, 2),
    _route("PUT", "/Groups/{group_id}", groups.replace_group, 10),
    _route("PATCH", "/Groups/{group_id}", groups.patch_group, 5),
    _route("DELETE", "/Groups/{group_id}", groups.delete_group, 3),
)
