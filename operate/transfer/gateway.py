"""The AI gateway's configuration, from the server to the table: secrets without their values, which
no server tells, model definitions, and endpoints with what is bound to them.

Parts keep their ids, unless the table has another of the same name: then that one is made equal,
and what names it does so by the table's id. A secret whose values are set at the target is the
target's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from mlcore import errors
from mlcore.entities import gateway as entities
from mlcore.entities.gateway import (
    Binding,
    Configuration,
    Endpoint,
    FallbackConfig,
    ModelDefinition,
    Secret,
)
from mlcore.gateway.sealing import is_unset
from mlcore.repos.gateway import configuration
from mlcore.repos.gateway.items import Part
from mlcore.responses import gateway as responses
from mlcore.settle import settle
from operate.transfer.item import Content, Item
from operate.transfer.rest import Json, Server
from operate.transfer.source import API_3, offered, texts

GATEWAY: Final = f"{API_3}/gateway"
BINDING: Final = "gateway binding"
NOT_MOVED: Final = "not moved"
"""What is shown of a secret's value that is missing."""

_SECRET_OWN: Final = ("secret_name", "provider", "auth_config")
_DEFINITION_OWN: Final = ("name", "secret_id", "provider", "model_name")
_ENDPOINT_OWN: Final = (
    *("name", "routing_strategy", "fallback_config", "experiment_id", "usage_tracking"),
)
_MAPPING_OWN: Final = ("model_definition_id", "weight", "linkage_type", "fallback_order")
_AUTHORS: Final = ("created_by", "last_updated_by")


class Told(NamedTuple):
    """What a server has of a workspace, and which part of the table stands for each of its."""

    server: Server
    secrets: list[Json]
    model_definitions: list[Json]
    endpoints: list[Json]
    ids: Mapping[str, str]
    """The table's id of a secret, a model definition or an endpoint, by the server's."""

    def endpoint_named(self, name: str) -> str | None:
        """The table's id of an endpoint of the server."""
        named = (self.ids[one["endpoint_id"]] for one in self.endpoints if one["name"] == name)
        return next(named, None)


def read(server: Server) -> Told | None:
    """None of a server before 3.8, or of one that keeps its data in files."""
    secrets = offered(server.pages("GET", f"{GATEWAY}/secrets/list", "secrets"))
    if secrets is None:
        return None
    path = f"{GATEWAY}/model-definitions/list"
    definitions = list(server.pages("GET", path, "model_definitions"))
    endpoints = list(server.pages("GET", f"{GATEWAY}/endpoints/list", "endpoints"))
    there = configuration.read(server.workspace)
    ids = {
        **_matched(secrets, "secret_id", "secret_name", there.secrets),
        **_matched(definitions, "model_definition_id", "name", there.model_definitions),
        **_matched(endpoints, "endpoint_id", "name", there.endpoints),
    }
    return Told(server, secrets, definitions, endpoints, ids)


def _matched(told: list[Json], id_field: str, name_field: str, there: Any) -> dict[str, str]:
    """The second field of a part is its name."""
    named: dict[str, str] = {part[1]: part_id for part_id, part in there.items()}
    ids: dict[str, str] = {}
    for one in told:
        part_id: str = one[id_field]
        ids[part_id] = part_id if part_id in there else named.get(one[name_field], part_id)
    return ids


def secret(told: Told, fields: Json) -> Item:
    workspace, secret_id = told.server.workspace, told.ids[fields["secret_id"]]
    name = fields["secret_name"]
    everything = {**picked(fields, _SECRET_OWN), **times(fields)}
    everything["auth_config"] = fields.get("auth_config") or {}

    def find() -> Secret | None:
        return configuration.read(workspace).secrets.get(secret_id)

    def want() -> Content:
        found = find()
        return everything if found is None or is_unset(found) else {"secret_name": name}

    def have() -> Content | None:
        found = find()
        if found is None:
            return None
        if not is_unset(found):
            return {"secret_name": found.secret_name}
        shown = responses.secret(found)
        auth_config = found.auth_config
        return {**picked(shown, _SECRET_OWN), **times(shown), "auth_config": auth_config}

    def made(known: Configuration) -> Secret:
        found = known.secrets.get(secret_id)
        if found is not None and not is_unset(found):
            return found
        return Secret(
            secret_id=secret_id,
            secret_name=name,
            sealed="",
            masked=dict.fromkeys(fields.get("masked_values") or (), NOT_MOVED),
            provider=fields.get("provider"),
            auth_config=everything["auth_config"],
            **times(fields),
            revision=0 if found is None else found.revision,
        )

    return Item(
        "gateway secret", repr(name), want, have, writing(workspace, made), identity=secret_id
    )


def unset_secrets(workspace: str) -> list[str]:
    """The names of the secrets whose values nobody has set at the target."""
    found = configuration.read(workspace).secrets.values()
    return sorted(one.secret_name for one in found if is_unset(one) and one.masked)


def model_definition(told: Told, fields: Json) -> Item:
    """Without a secret where it has lost that."""
    workspace = told.server.workspace
    definition_id = told.ids[fields["model_definition_id"]]
    secret_id = told.ids.get(fields.get("secret_id", ""))
    want = {**picked({**fields, "secret_id": secret_id}, _DEFINITION_OWN), **times(fields)}

    def have() -> Content | None:
        known = configuration.read(workspace)
        found = known.model_definitions.get(definition_id)
        if found is None:
            return None
        shown = responses.model_definition(found, known)
        return {**picked(shown, _DEFINITION_OWN), **times(shown)}

    def made(known: Configuration) -> ModelDefinition:
        found = known.model_definitions.get(definition_id)
        return ModelDefinition(
            model_definition_id=definition_id,
            name=fields["name"],
            secret_id=secret_id or "",
            provider=fields["provider"],
            model_name=fields["model_name"],
            **times(fields),
            revision=0 if found is None else found.revision,
        )

    return Item(
        "gateway model",
        repr(fields["name"]),
        lambda: want,
        have,
        writing(workspace, made),
        identity=definition_id,
    )


def endpoint(told: Told, fields: Json, target_of: Callable[[str], str]) -> Item:
    """Without its bindings and guardrails, which name scorers.

    Args:
        target_of: the product's id of an experiment of the server.
    """
    workspace, endpoint_id = told.server.workspace, told.ids[fields["endpoint_id"]]
    experiment_id = fields.get("experiment_id") or None
    if experiment_id is not None:
        experiment_id = target_of(experiment_id)
    mapped = {
        **fields,
        "experiment_id": experiment_id,
        "model_mappings": [
            {**one, "model_definition_id": told.ids[one["model_definition_id"]]}
            for one in fields.get("model_mappings", ())
        ],
    }

    def have() -> Content | None:
        known = configuration.read(workspace)
        found = known.endpoints.get(endpoint_id)
        return None if found is None else _endpoint_content(responses.endpoint(found, known))

    def made(known: Configuration) -> Endpoint:
        found = known.endpoints.get(endpoint_id)
        return _endpoint(mapped, endpoint_id, found)

    return Item(
        "gateway endpoint",
        repr(fields["name"]),
        lambda: _endpoint_content(mapped),
        have,
        writing(workspace, made),
        identity=endpoint_id,
    )


def _endpoint_content(fields: Json) -> Content:
    return {
        **picked(fields, _ENDPOINT_OWN),
        "usage_tracking": bool(fields.get("usage_tracking", False)),
        "tags": texts(fields.get("tags")),
        "model_mappings": {
            one["mapping_id"]: {
                **picked(one, _MAPPING_OWN),
                "created_at": int(one["created_at"]),
                "created_by": one.get("created_by") or None,
            }
            for one in fields.get("model_mappings", ())
        },
        **times(fields),
    }


def _endpoint(fields: Json, endpoint_id: str, found: Endpoint | None) -> Endpoint:
    fallback = fields.get("fallback_config")
    mappings = tuple(
        entities.Mapping(
            mapping_id=one["mapping_id"],
            model_definition_id=one["model_definition_id"],
            weight=one.get("weight", 1.0),
            linkage_type=one["linkage_type"],
            fallback_order=one.get("fallback_order"),
            created_at=int(one["created_at"]),
            created_by=one.get("created_by") or None,
        )
        for one in fields["model_mappings"]
    )
    return Endpoint(
        endpoint_id=endpoint_id,
        name=fields["name"],
        mappings=mappings,
        tags=texts(fields.get("tags")),
        bindings=() if found is None else found.bindings,
        guardrails=() if found is None else found.guardrails,
        routing_strategy=fields.get("routing_strategy"),
        fallback=None
        if fallback is None
        else FallbackConfig(fallback.get("strategy"), fallback.get("max_attempts")),
        experiment_id=fields["experiment_id"],
        usage_tracking=bool(fields.get("usage_tracking", False)),
        **times(fields),
        revision=0 if found is None else found.revision,
    )


def bindings(told: Told) -> list[Item]:
    """Of what is listed by the server; after the scorers, which bind themselves."""
    path = f"{GATEWAY}/endpoints/bindings/list"
    found = told.server.pages("GET", path, "bindings")
    return [_binding(told, one) for one in found if one["endpoint_id"] in told.ids]


def _binding(told: Told, fields: Json) -> Item:
    workspace, endpoint_id = told.server.workspace, told.ids[fields["endpoint_id"]]
    binding = Binding(
        fields["resource_type"],
        fields["resource_id"],
        int(fields["created_at"]),
        fields.get("created_by") or None,
        fields.get("display_name"),
    )

    def have() -> Content | None:
        endpoint = configuration.read(workspace).endpoints.get(endpoint_id)
        held = () if endpoint is None else endpoint.bindings
        return next((one._asdict() for one in held if one[:2] == binding[:2]), None)

    def made(known: Configuration) -> Endpoint:
        endpoint = there(known, endpoint_id)
        kept = (one for one in endpoint.bindings if one[:2] != binding[:2])
        return endpoint._replace(bindings=(*kept, binding))

    return Item(
        BINDING,
        binding_identity(endpoint_id, binding),
        binding._asdict,
        have,
        writing(workspace, made),
    )


def binding_identity(endpoint_id: str, binding: Binding) -> str:
    return f"{endpoint_id}/{binding.resource_type}/{binding.resource_id}"


def there(known: Configuration, endpoint_id: str) -> Endpoint:
    """Raises ResourceDoesNotExist: it could not be brought."""
    found = known.endpoints.get(endpoint_id)
    if found is None:
        raise errors.ResourceDoesNotExist(
            f"GatewayEndpoint not found (endpoint_id='{endpoint_id}')"
        )
    return found


def writing(
    workspace: str, made: Callable[[Configuration], Part]
) -> Callable[[Content, Content | None], None]:
    """Writes what ``made`` makes of the configuration, anew when somebody else was first.

    Raises ResourceAlreadyExists: another part has the name, which cannot be the one that stands for
    it, for it has one by its id.
    """

    def attempt() -> None:
        known = configuration.to_change(workspace)
        part = made(known)
        for kind, parts in (
            (Secret, known.secrets),
            (ModelDefinition, known.model_definitions),
            (Endpoint, known.endpoints),
        ):
            taken = {other[1]: part_id for part_id, other in parts.items()}
            if isinstance(part, kind) and taken.get(part[1], part[0]) != part[0]:
                raise errors.ResourceAlreadyExists(f"The target has another one named {part[1]!r}.")
        configuration.write(known, puts=[part])

    return lambda _want, _have: settle("gateway's configuration", attempt)


def picked(fields: Json, names: tuple[str, ...]) -> Json:
    return {name: fields.get(name) for name in names}


def times(fields: Json) -> Json:
    """By whom, and when; nobody is told as an empty text."""
    return {
        **{name: fields.get(name) or None for name in _AUTHORS},
        "created_at": int(fields["created_at"]),
        "last_updated_at": int(fields["last_updated_at"]),
    }
