"""Who may do what with serving environments, inference services and what they serve
(``docs/adr/0039``).

A service is decided by the model that it serves. Environments are read by everybody in the
workspace, and changed by who made them or administrates the workspace.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlcore.db import keys
from mlcore.db.table import table
from mlcore.kubeflow.asked import Asked
from mlcore.kubeflow.kinds import INFERENCE_SERVICE
from mlcore.models.kubeflow import NumberedItem
from mlcore.policies.access import Access
from mlcore.policies.kubeflow import (
    NOBODYS,
    external_number,
    is_owner,
    model_name_of,
    on_model_numbered,
    on_version_numbered,
    on_version_of,
    reads_workspace,
    required_reference,
)
from mlcore.repos.kubeflow import entities, serving, steps

Policy = Callable[[Access, Asked], bool]

# ------------------------------------------------------------------ environments


def read_serving(access: Access, asked: Asked) -> bool:
    """Environments, and lists of services, which hold what the caller may read."""
    return reads_workspace(access)


def write_environment(access: Access, asked: Asked) -> bool:
    raw = table.get(keys.serving_environment(asked.id))
    if raw is None or NumberedItem.of(raw).workspace != access.workspace:
        return reads_workspace(access)
    return is_owner(access, raw)


def delete_environment(access: Access, asked: Asked) -> bool:
    """The environment, and the services that go with it."""
    if not write_environment(access, asked):
        return False
    services = serving.children(asked.id, INFERENCE_SERVICE, access.workspace)
    return all(on_model_numbered(access, _model_served(raw), "update") for raw in services)


# ------------------------------------------------------------------ services


def _model_served(raw: dict[str, Any]) -> int:
    return int(entities.entity_of(raw).fields["registeredModelId"])


def _on_service(access: Access, number: int, action: str) -> bool:
    raw = entities.find(INFERENCE_SERVICE.name, number, access.workspace)
    return on_model_numbered(access, NOBODYS if raw is None else _model_served(raw), action)


def on_service(action: str) -> Policy:
    def policy(access: Access, asked: Asked) -> bool:
        return _on_service(access, asked.id, action)

    return policy


def find_service(access: Access, asked: Asked) -> bool:
    if asked.names_child:
        child = steps.find_child(asked.parent, INFERENCE_SERVICE, asked.arguments["name"])
        return _on_service(access, NOBODYS if child is None else child.number, "read")
    return _on_service(access, external_number(access, INFERENCE_SERVICE, asked), "read")


def create_service(access: Access, asked: Asked) -> bool:
    """A service is made by who may change the model that it serves."""
    model = required_reference(asked, "registeredModelId")
    return on_model_numbered(access, model, "update") and _names_readable_version(access, asked)


def update_service(access: Access, asked: Asked) -> bool:
    return _on_service(access, asked.id, "update") and _names_readable_version(access, asked)


def create_serve(access: Access, asked: Asked) -> bool:
    return update_service(access, asked)


def _names_readable_version(access: Access, asked: Asked) -> bool:
    """Whether the version that the body names, if any, may be read."""
    version = asked.reference("modelVersionId")
    return version is None or on_version_numbered(access, version, "read")


def read_served_version(access: Access, asked: Asked) -> bool:
    """The version that is answered: the one that the service names, which may be another model's,
    or else one of its model."""
    raw = entities.find(INFERENCE_SERVICE.name, asked.id, access.workspace)
    if raw is None:
        return on_model_numbered(access, NOBODYS, "read")
    named = entities.entity_of(raw).fields.get("modelVersionId")
    if not on_model_numbered(access, _model_served(raw), "read"):
        return False
    if named:
        return on_version_numbered(access, int(named), "read")
    return on_version_of(access, model_name_of(access, _model_served(raw)), "read")


read_service = on_service("read")
delete_service = on_service("update")
