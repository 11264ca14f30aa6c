"""Makes the responses of SCIM: users and groups with their versions and addresses, and lists."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from mlcore.entities.scim import ScimGroup, ScimUser, parse_scim_id
from mlcore.http import Request, Response
from mlcore.http.compression import fit
from users.scim.errors import CONTENT_TYPE, ScimError
from users.scim.messages import ScimRequest

USER_SCHEMA: Final = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP_SCHEMA: Final = "urn:ietf:params:scim:schemas:core:2.0:Group"
LIST_SCHEMA: Final = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
_ALWAYS: Final = frozenset({"schemas", "id"})

Resource = dict[str, Any]


def user(entity: ScimUser, request: Request) -> Resource:
    """Returns the SCIM JSON of a user."""
    return {
        "schemas": [USER_SCHEMA],
        "id": entity.scim_id,
        **({} if entity.external_id is None else {"externalId": entity.external_id}),
        "userName": entity.user.username,
        "active": entity.user.is_active,
        **entity.attributes,
        "meta": meta("User", f"Users/{entity.scim_id}", entity, request),
    }


def group(entity: ScimGroup, member_ids: Sequence[str], request: Request) -> Resource:
    """Returns the SCIM JSON of a group. The members' names follow from their ids, so no user is
    read."""
    parsed_ids = [(scim_id, parse_scim_id(scim_id)) for scim_id in member_ids]
    members = [
        {
            "value": scim_id,
            "display": parsed[1],
            "type": "User",
            "$ref": f"{base(request)}/Users/{scim_id}",
        }
        for scim_id, parsed in parsed_ids
        if parsed is not None
    ]
    return {
        "schemas": [GROUP_SCHEMA],
        "id": entity.group_id,
        **({} if entity.external_id is None else {"externalId": entity.external_id}),
        "displayName": entity.display_name,
        **({"members": members} if members else {}),
        "meta": meta("Group", f"Groups/{entity.group_id}", entity, request),
    }


def is_wanted(attribute: str, message: ScimRequest) -> bool:
    """Whether a SCIM request asks for an attribute, which is given in lower case, in the
    response."""
    if message.only:
        return any(name.partition(".")[0] == attribute for name in message.only)
    return attribute not in message.without


def meta(kind: str, path: str, entity: Any, request: Request) -> Resource:
    """Returns the attribute ``meta`` (type, times, URL and version) of a user or group.

    Args:
        path: the path of the user or group below ``/scim/v2/``.
    """
    attributes: Resource = {"resourceType": kind}
    if entity.created_at is not None:
        attributes["created"] = _time(entity.created_at)
        attributes["lastModified"] = _time(entity.updated_at)
    return {
        **attributes,
        "location": f"{base(request)}/{path}",
        "version": version_of(entity.version),
    }


def base(request: Request) -> str:
    """Returns the URL of this server's SCIM API. Its host is from PUBLIC_URL or the request's Host
    header."""
    public = os.environ.get("PUBLIC_URL", "").rstrip("/")
    if not public:
        secure = request.headers.get("x-forwarded-proto", "").startswith("https")
        public = f"{'https' if secure else 'http'}://{request.headers.get('host', '')}"
    return f"{public}/scim/v2"


def version_of(number: int) -> str:
    """Returns the weak entity tag (ETag) of a user or group with this version number."""
    return f'W/"{number}"'


def check_version(message: ScimRequest, version: int) -> None:
    """Compares the header If-Match with the version of a user or group. Raises ScimError (412) if
    it names only other versions; a request without the header passes."""
    expected = message.if_match.strip()
    if expected and expected != "*" and version_of(version) not in _tags(expected):
        raise ScimError(412, "The resource was changed meanwhile.")


def one(resource: Resource, message: ScimRequest, request: Request) -> Response:
    """Returns the SCIM response with one user, group or other resource; to a read, 304 without it
    if If-None-Match names this version or ``*``."""
    headers = {"etag": resource["meta"]["version"]}
    if request.method in ("GET", "HEAD"):
        known = message.if_none_match.strip()
        if known and (known == "*" or headers["etag"] in _tags(known)):
            return Response(304, "", CONTENT_TYPE, headers)
    return _response(selected(resource, message), request, headers=headers)


def created(resource: Resource, id_field: str, message: ScimRequest, request: Request) -> Response:
    """Returns the response with a resource that the request created (201). ``id_field`` is the name
    that the audit gives to its id: ``scim_id`` of a user, ``group_id`` of a group."""
    headers = {"etag": resource["meta"]["version"], "location": resource["meta"]["location"]}
    response = _response(selected(resource, message), request, 201, headers)
    return response._replace(created={id_field: resource["id"]})


def page(
    resources: Sequence[Resource], total: int, message: ScimRequest, request: Request
) -> Response:
    """Returns the SCIM response with a page of a list of users or groups. ``total`` is the length
    of the whole list."""
    body = {
        "schemas": [LIST_SCHEMA],
        "totalResults": total,
        "startIndex": message.start,
        "itemsPerPage": len(resources),
        "Resources": [selected(resource, message) for resource in resources],
    }
    return _response(body, request)


def document(body: Mapping[str, Any], request: Request) -> Response:
    """Returns the response with ``body``, a SCIM discovery document by which clients learn what the
    server supports."""
    return _response(body, request)


def nothing() -> Response:
    return Response(204, "", CONTENT_TYPE)


def selected(resource: Resource, message: ScimRequest) -> Resource:
    """Returns the JSON of a SCIM resource (user, group or other) with only those attributes that
    the SCIM request asks for, and always ``schemas`` and ``id``."""
    return {k: v for k, v in resource.items() if k in _ALWAYS or is_wanted(k.lower(), message)}


def _response(
    body: Mapping[str, Any],
    request: Request,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:
    text = json.dumps(body, ensure_ascii=False)
    return fit(Response(status, text, CONTENT_TYPE, headers or {}), request.headers)


def _time(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1_000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _tags(header: str) -> list[str]:
    return [tag.strip() for tag in header.split(",")]
