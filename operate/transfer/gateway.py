"""Transfers the AI gateway's configuration: secrets without values (no server returns them), model
definitions, endpoints and their bindings.
These parts keep their ids. If the table has a part of the same name with another id, that part is
updated, and references to it use its id. A secret whose value was set in the table is not changed.
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
from mlcore.gateway.secret_values import is_unset
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos.gateway import configuration
from mlcore.repos.gateway.items import Part
from mlcore.responses import gateway as responses
from operate.transfer.mlflow_client import Json, Server
from operate.transfer.source_reader import API_3, none_if_unsupported, values_by_key
from operate.transfer.transfer_item import Content, TransferItem

GATEWAY: Final = f"{API_3}/gateway"
BINDING: Final = "gateway binding"
NOT_MOVED: Final = "not moved"
"""The placeholder for the value of a secret that was not transferred."""

_SECRET_OWN: Final = ("secret_name", "provider", "auth_config")
_DEFINITION_OWN: Final = ("name", "secret_id", "provider", "model_name")
_ENDPOINT_OWN: Final = (
    *("name", "routing_strategy", "fallback_config", "experiment_id", "usage_tracking"),
)
_MAPPING_OWN: Final = ("model_definition_id", "weight", "linkage_type", "fallback_order")
_AUTHORS: Final = ("created_by", "last_updated_by")


class GatewaySnapshot(NamedTuple):
    """The AI gateway's configuration of a workspace, as the MLflow server returned it from which an
    import reads, and the ids that this product's table has for it."""

    server: Server
    secrets: list[Json]
    model_definitions: list[Json]
    endpoints: list[Json]
    ids: Mapping[str, str]
    """The table's id of each secret, model definition or endpoint, by the server's id."""

    def endpoint_named(self, name: str) -> str | None:
        """Returns the table's id of the gateway endpoint that has this name on the source server;
        None if there is none."""
        named = (
            self.ids[endpoint["endpoint_id"]]
            for endpoint in self.endpoints
            if endpoint["name"] == name
        )
        return next(named, None)


def read(server: Server) -> GatewaySnapshot | None:
    """Reads the gateway's configuration from the MLflow server; None if that server is older than
    3.8 or keeps its data in files."""
    secrets = none_if_unsupported(server.pages("GET", f"{GATEWAY}/secrets/list", "secrets"))
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
    return GatewaySnapshot(server, secrets, definitions, endpoints, ids)


def _matched(listed: list[Json], id_field: str, name_field: str, there: Any) -> dict[str, str]:
    """Returns the id in the table of each part, by the server's id: the same id if the table has
    it; otherwise the id of the table's part with the same name; otherwise the same id, for a part
    that is new."""
    named: dict[str, str] = {part[1]: part_id for part_id, part in there.items()}
    ids: dict[str, str] = {}
    for fields in listed:
        part_id: str = fields[id_field]
        ids[part_id] = part_id if part_id in there else named.get(fields[name_field], part_id)
    return ids


def secret(snapshot: GatewaySnapshot, fields: Json) -> TransferItem:
    workspace, secret_id = snapshot.server.workspace, snapshot.ids[fields["secret_id"]]
    name = fields["secret_name"]
    everything = {**selected_fields(fields, _SECRET_OWN), **audit_fields(fields)}
    everything["auth_config"] = fields.get("auth_config") or {}

    def find() -> Secret | None:
        return configuration.read(workspace).secrets.get(secret_id)

    def want() -> Content:
        existing = find()
        return everything if existing is None or is_unset(existing) else {"secret_name": name}

    def have() -> Content | None:
        existing = find()
        if existing is None:
            return None
        if not is_unset(existing):
            return {"secret_name": existing.secret_name}
        shown = responses.secret(existing)
        auth_config = existing.auth_config
        return {
            **selected_fields(shown, _SECRET_OWN),
            **audit_fields(shown),
            "auth_config": auth_config,
        }

    def made(known: Configuration) -> Secret:
        existing = known.secrets.get(secret_id)
        if existing is not None and not is_unset(existing):
            return existing
        return Secret(
            secret_id=secret_id,
            secret_name=name,
            sealed="",
            masked=dict.fromkeys(fields.get("masked_values") or (), NOT_MOVED),
            provider=fields.get("provider"),
            auth_config=everything["auth_config"],
            **audit_fields(fields),
            revision=0 if existing is None else existing.revision,
        )

    return TransferItem(
        "gateway secret", repr(name), want, have, part_writer(workspace, made), identity=secret_id
    )


def unset_secrets(workspace: str) -> list[str]:
    """Returns the names of the workspace's gateway secrets that were imported without their values
    (API keys), which nobody has set since."""
    secrets = configuration.read(workspace).secrets.values()
    return sorted(secret.secret_name for secret in secrets if is_unset(secret) and secret.masked)


def model_definition(snapshot: GatewaySnapshot, fields: Json) -> TransferItem:
    """Returns a gateway model definition as an item to transfer from a server to the table. A
    definition whose secret was deleted is transferred without a secret."""
    workspace = snapshot.server.workspace
    definition_id = snapshot.ids[fields["model_definition_id"]]
    secret_id = snapshot.ids.get(fields.get("secret_id", ""))
    want = {
        **selected_fields({**fields, "secret_id": secret_id}, _DEFINITION_OWN),
        **audit_fields(fields),
    }

    def have() -> Content | None:
        known = configuration.read(workspace)
        existing = known.model_definitions.get(definition_id)
        if existing is None:
            return None
        shown = responses.model_definition(existing, known)
        return {**selected_fields(shown, _DEFINITION_OWN), **audit_fields(shown)}

    def made(known: Configuration) -> ModelDefinition:
        existing = known.model_definitions.get(definition_id)
        return ModelDefinition(
            model_definition_id=definition_id,
            name=fields["name"],
            secret_id=secret_id or "",
            provider=fields["provider"],
            model_name=fields["model_name"],
            **audit_fields(fields),
            revision=0 if existing is None else existing.revision,
        )

    return TransferItem(
        "gateway model",
        repr(fields["name"]),
        lambda: want,
        have,
        part_writer(workspace, made),
        identity=definition_id,
    )


def endpoint(
    snapshot: GatewaySnapshot, fields: Json, target_of: Callable[[str], str]
) -> TransferItem:
    """Returns the item that transfers a gateway endpoint, without its bindings and guardrails:
    these refer to scorers, which are transferred later.

    Args:
        target_of: returns this product's id of an experiment, given its id on the server that is
            read.
    """
    workspace, endpoint_id = snapshot.server.workspace, snapshot.ids[fields["endpoint_id"]]
    experiment_id = fields.get("experiment_id") or None
    if experiment_id is not None:
        experiment_id = target_of(experiment_id)
    mapped = {
        **fields,
        "experiment_id": experiment_id,
        "model_mappings": [
            {**mapping, "model_definition_id": snapshot.ids[mapping["model_definition_id"]]}
            for mapping in fields.get("model_mappings", ())
        ],
    }

    def have() -> Content | None:
        known = configuration.read(workspace)
        existing = known.endpoints.get(endpoint_id)
        return None if existing is None else _endpoint_content(responses.endpoint(existing, known))

    def made(known: Configuration) -> Endpoint:
        existing = known.endpoints.get(endpoint_id)
        return _endpoint(mapped, endpoint_id, existing)

    return TransferItem(
        "gateway endpoint",
        repr(fields["name"]),
        lambda: _endpoint_content(mapped),
        have,
        part_writer(workspace, made),
        identity=endpoint_id,
    )


def _endpoint_content(fields: Json) -> Content:
    return {
        **selected_fields(fields, _ENDPOINT_OWN),
        "usage_tracking": bool(fields.get("usage_tracking", False)),
        "tags": values_by_key(fields.get("tags")),
        "model_mappings": {
            mapping["mapping_id"]: {
                **selected_fields(mapping, _MAPPING_OWN),
                "created_at": int(mapping["created_at"]),
                "created_by": mapping.get("created_by") or None,
            }
            for mapping in fields.get("model_mappings", ())
        },
        **audit_fields(fields),
    }


def _endpoint(fields: Json, endpoint_id: str, existing: Endpoint | None) -> Endpoint:
    fallback = fields.get("fallback_config")
    mappings = tuple(
        entities.ModelMapping(
            mapping_id=field["mapping_id"],
            model_definition_id=field["model_definition_id"],
            weight=field.get("weight", 1.0),
            linkage_type=field["linkage_type"],
            fallback_order=field.get("fallback_order"),
            created_at=int(field["created_at"]),
            created_by=field.get("created_by") or None,
        )
        for field in fields["model_mappings"]
    )
    return Endpoint(
        endpoint_id=endpoint_id,
        name=fields["name"],
        mappings=mappings,
        tags=values_by_key(fields.get("tags")),
        bindings=() if existing is None else existing.bindings,
        guardrails=() if existing is None else existing.guardrails,
        routing_strategy=fields.get("routing_strategy"),
        fallback=None
        if fallback is None
        else FallbackConfig(fallback.get("strategy"), fallback.get("max_attempts")),
        experiment_id=fields["experiment_id"],
        usage_tracking=bool(fields.get("usage_tracking", False)),
        **audit_fields(fields),
        revision=0 if existing is None else existing.revision,
    )


def bindings(snapshot: GatewaySnapshot) -> list[TransferItem]:
    """Returns the items that transfer the bindings of an MLflow server's gateway endpoints: which
    resource, such as a scorer, uses which endpoint. To be run after the scorers, which create their
    own bindings."""
    path = f"{GATEWAY}/endpoints/bindings/list"
    listed = snapshot.server.pages("GET", path, "bindings")
    return [
        _binding(snapshot, fields) for fields in listed if fields["endpoint_id"] in snapshot.ids
    ]


def _binding(snapshot: GatewaySnapshot, fields: Json) -> TransferItem:
    workspace, endpoint_id = snapshot.server.workspace, snapshot.ids[fields["endpoint_id"]]
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
        return next((other._asdict() for other in held if other[:2] == binding[:2]), None)

    def made(known: Configuration) -> Endpoint:
        endpoint = existing_endpoint(known, endpoint_id)
        kept = (other for other in endpoint.bindings if other[:2] != binding[:2])
        return endpoint._replace(bindings=(*kept, binding))

    return TransferItem(
        BINDING,
        binding_identity(endpoint_id, binding),
        binding._asdict,
        have,
        part_writer(workspace, made),
    )


def binding_identity(endpoint_id: str, binding: Binding) -> str:
    return f"{endpoint_id}/{binding.resource_type}/{binding.resource_id}"


def existing_endpoint(known: Configuration, endpoint_id: str) -> Endpoint:
    """Returns the gateway endpoint that the target table has under this id. Raises
    ResourceDoesNotExist if it was not transferred."""
    stored = known.endpoints.get(endpoint_id)
    if stored is None:
        raise errors.ResourceDoesNotExist(
            f"GatewayEndpoint not found (endpoint_id='{endpoint_id}')"
        )
    return stored


def part_writer(
    workspace: str, made: Callable[[Configuration], Part]
) -> Callable[[Content, Content | None], None]:
    """Returns a function that writes a changed part of the gateway's configuration (a secret, a
    model definition or an endpoint). To compute the part it calls ``made`` with the current
    configuration, and again if another process wrote the configuration meanwhile. It raises
    ResourceAlreadyExists if a part with another id has the same name."""

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

    return lambda _want, _have: retry_on_conflict("gateway's configuration", attempt)


def selected_fields(fields: Json, names: tuple[str, ...]) -> Json:
    return {name: fields.get(name) for name in names}


def audit_fields(fields: Json) -> Json:
    """Returns those fields of a part of the AI gateway's configuration (such as an endpoint) that
    say who made and changed the part, and when (ms since 1970). The field of an unknown user is
    None."""
    return {
        **{name: fields.get(name) or None for name in _AUTHORS},
        "created_at": int(fields["created_at"]),
        "last_updated_at": int(fields["last_updated_at"]),
    }
