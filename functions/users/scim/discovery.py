"""The SCIM documents that describe the server to a company's directory: its features, the types of
resources and their schemas (RFC 7643, sections 5 to 7)."""

from __future__ import annotations

from typing import Any, Final

from mlcore.http import Request, Response
from users.scim import responses
from users.scim.errors import missing
from users.scim.messages import MAX_COUNT, ScimRequest
from users.scim.responses import GROUP_SCHEMA, USER_SCHEMA, Resource

_CONFIG_SCHEMA: Final = "urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"
_TYPE_SCHEMA: Final = "urn:ietf:params:scim:schemas:core:2.0:ResourceType"
_SCHEMA_SCHEMA: Final = "urn:ietf:params:scim:schemas:core:2.0:Schema"


def _attribute(name: str, kind: str = "string", **more: Any) -> dict[str, Any]:
    """Returns the description of an attribute: the default properties, replaced by those in
    ``more``."""
    usual: dict[str, Any] = {
        "name": name,
        "type": kind,
        "multiValued": False,
        "required": False,
        "mutability": "readWrite",
        "returned": "default",
        **({"caseExact": False, "uniqueness": "none"} if kind == "string" else {}),
    }
    return usual | more


_USER: Final = [
    _attribute("userName", required=True, mutability="immutable", uniqueness="server"),
    _attribute("externalId", caseExact=True),
    _attribute("active", "boolean"),
    _attribute("displayName"),
    _attribute(
        "name",
        "complex",
        subAttributes=[
            _attribute(part)
            for part in (
                *("formatted", "familyName", "givenName", "middleName"),
                *("honorificPrefix", "honorificSuffix"),
            )
        ],
    ),
    _attribute(
        "emails",
        "complex",
        multiValued=True,
        subAttributes=[
            *map(_attribute, ("value", "display", "type")),
            _attribute("primary", "boolean"),
        ],
    ),
]
_GROUP: Final = [
    _attribute("displayName", required=True, uniqueness="server"),
    _attribute("externalId", caseExact=True),
    _attribute(
        "members",
        "complex",
        multiValued=True,
        subAttributes=[
            _attribute("value", mutability="immutable", caseExact=True),
            _attribute("display", mutability="readOnly"),
            _attribute("type", mutability="immutable", canonicalValues=["User"]),
            _attribute("$ref", "reference", mutability="immutable", referenceTypes=["User"]),
        ],
    ),
]
_SCHEMAS: Final = {
    USER_SCHEMA: {
        "schemas": [_SCHEMA_SCHEMA],
        "id": USER_SCHEMA,
        "name": "User",
        "description": "A person who may log in. Attributes that are not listed are not stored.",
        "attributes": _USER,
    },
    GROUP_SCHEMA: {
        "schemas": [_SCHEMA_SCHEMA],
        "id": GROUP_SCHEMA,
        "name": "Group",
        "description": "Users with the roles that the setting sign_in_roles gives to the group.",
        "attributes": _GROUP,
    },
}
_TYPES: Final = {
    "User": {
        "schemas": [_TYPE_SCHEMA],
        "id": "User",
        "name": "User",
        "endpoint": "/Users",
        "description": "A person who may log in.",
        "schema": USER_SCHEMA,
        "schemaExtensions": [],
    },
    "Group": {
        "schemas": [_TYPE_SCHEMA],
        "id": "Group",
        "name": "Group",
        "endpoint": "/Groups",
        "description": "Users who have the roles of the group.",
        "schema": GROUP_SCHEMA,
        "schemaExtensions": [],
    },
}


def get_configuration(_message: ScimRequest, request: Request) -> Response:
    """Returns which features of SCIM the server has."""
    body = {
        "schemas": [_CONFIG_SCHEMA],
        "patch": {"supported": True},
        "bulk": {"supported": False, "maxOperations": 0, "maxPayloadSize": 0},
        "filter": {"supported": True, "maxResults": MAX_COUNT},
        "changePassword": {"supported": False},
        "sort": {"supported": False},
        "etag": {"supported": True},
        "authenticationSchemes": [
            {
                "type": "oauthbearertoken",
                "name": "API key",
                "description": "An API key with the scope 'scim', as a bearer token.",
                "primary": True,
            }
        ],
        "meta": _meta("ServiceProviderConfig", "ServiceProviderConfig", request),
    }
    return responses.document(body, request)


def list_types(message: ScimRequest, request: Request) -> Response:
    return _all([_type(name, request) for name in _TYPES], message, request)


def get_type(message: ScimRequest, request: Request) -> Response:
    if message.scim_id not in _TYPES:
        raise missing("ResourceType", message.scim_id)
    return responses.document(_type(message.scim_id, request), request)


def list_schemas(message: ScimRequest, request: Request) -> Response:
    return _all([_schema(urn, request) for urn in _SCHEMAS], message, request)


def get_schema(message: ScimRequest, request: Request) -> Response:
    if message.scim_id not in _SCHEMAS:
        raise missing("Schema", message.scim_id)
    return responses.document(_schema(message.scim_id, request), request)


def _type(name: str, request: Request) -> Resource:
    return {**_TYPES[name], "meta": _meta("ResourceType", f"ResourceTypes/{name}", request)}


def _schema(urn: str, request: Request) -> Resource:
    return {**_SCHEMAS[urn], "meta": _meta("Schema", f"Schemas/{urn}", request)}


def _all(resources: list[Resource], _message: ScimRequest, request: Request) -> Response:
    """Returns all resources. As RFC 7644 demands, parameters of the request are ignored."""
    return responses.page(resources, len(resources), ScimRequest(), request)


def _meta(kind: str, path: str, request: Request) -> dict[str, str]:
    return {"resourceType": kind, "location": f"{responses.base(request)}/{path}"}
