"""Permission checks for requests about serving environments, inference services and serve records
(``docs/adr/0039``).

The rights on a service are those on the model that it serves. Everybody in the workspace may read
environments; their creator and administrators of the workspace may change them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlcore.db import keys
from mlcore.db.table import table
from mlcore.kubeflow.kinds import INFERENCE_SERVICE
from mlcore.kubeflow.registry_request import RegistryRequest
from mlcore.models.kubeflow import NumberedItem
from mlcore.policies.access import Access
from mlcore.policies.kubeflow import (
    NO_ENTITY,
    external_number,
    is_owner,
    model_name_of,
    on_model_numbered,
    on_version_numbered,
    on_version_of,
    reads_workspace,
    required_reference,
)
from mlcore.repos.kubeflow import entities, serving, transaction_steps

Policy = Callable[[Access, RegistryRequest], bool]

# ------------------------------------------------------------------ environments


def read_serving(access: Access, request: RegistryRequest) -> bool:
    """Allows everybody in the workspace to read serving environments and lists of inference
    services. The route's function removes services that the caller may not read."""
    return reads_workspace(access)


def write_environment(access: Access, request: RegistryRequest) -> bool:
    raw = table.get(keys.serving_environment(request.id))
    if raw is None or NumberedItem.of(raw).workspace != access.workspace:
        return reads_workspace(access)
    return is_owner(access, raw)


def delete_environment(access: Access, request: RegistryRequest) -> bool:
    """Requires the right to change the serving environment and, since its services are deleted with
    it, to update the models that they serve."""
    if not write_environment(access, request):
        return False
    services = serving.children(request.id, INFERENCE_SERVICE, access.workspace)
    return all(on_model_numbered(access, _model_served(service), "update") for service in services)


# ------------------------------------------------------------------ services


def _model_served(raw: dict[str, Any]) -> int:
    return int(entities.entity_of(raw).fields["registeredModelId"])


def _on_service(access: Access, number: int, action: str) -> bool:
    raw = entities.find(INFERENCE_SERVICE.name, number, access.workspace)
    return on_model_numbered(access, NO_ENTITY if raw is None else _model_served(raw), action)


def on_service(action: str) -> Policy:
    def policy(access: Access, request: RegistryRequest) -> bool:
        return _on_service(access, request.id, action)

    return policy


def find_service(access: Access, request: RegistryRequest) -> bool:
    if request.names_child:
        child = transaction_steps.find_child(
            request.parent, INFERENCE_SERVICE, request.arguments["name"]
        )
        return _on_service(access, NO_ENTITY if child is None else child.number, "read")
    return _on_service(access, external_number(access, INFERENCE_SERVICE, request), "read")


def create_service(access: Access, request: RegistryRequest) -> bool:
    """Requires the right to update the model that the inference service will serve, and to read the
    model version if the request names one."""
    model = required_reference(request, "registeredModelId")
    return on_model_numbered(access, model, "update") and _names_readable_version(access, request)


def update_service(access: Access, request: RegistryRequest) -> bool:
    return _on_service(access, request.id, "update") and _names_readable_version(access, request)


def create_serve(access: Access, request: RegistryRequest) -> bool:
    return update_service(access, request)


def _names_readable_version(access: Access, request: RegistryRequest) -> bool:
    """Whether the caller may read the model version that the body names; True if it names none."""
    version = request.reference("modelVersionId")
    return version is None or on_version_numbered(access, version, "read")


def read_served_version(access: Access, request: RegistryRequest) -> bool:
    """Requires the right to read the model that a Kubeflow inference service serves, and the model
    version that the answer contains: the version that the service names, which may belong to
    another model, or else a version of the service's model."""
    raw = entities.find(INFERENCE_SERVICE.name, request.id, access.workspace)
    if raw is None:
        return on_model_numbered(access, NO_ENTITY, "read")
    version_number = entities.entity_of(raw).fields.get("modelVersionId")
    if not on_model_numbered(access, _model_served(raw), "read"):
        return False
    if version_number:
        return on_version_numbered(access, int(version_number), "read")
    return on_version_of(access, model_name_of(access, _model_served(raw)), "read")


read_service = on_service("read")
delete_service = on_service("update")
