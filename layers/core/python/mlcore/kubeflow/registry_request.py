"""A parsed request to Kubeflow's registry. The policy and the function get the same object."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from mlcore.kubeflow.body import Values, number
from mlcore.kubeflow.kinds import EntityKind


class RegistryRequest(NamedTuple):
    """A parsed request of Kubeflow's API: ids in its path, query arguments, and the checked
    body."""

    id: int = 0
    """The id of the entity in the path."""
    serve_id: int = 0
    """The id of the serve model in the path, below an inference service."""
    arguments: Mapping[str, str] = MappingProxyType({})
    """The arguments of the query string, without empty ones."""
    parent: int = 0
    """The id of the parent that a find request gives together with a name."""
    artifact_kinds: tuple[str, ...] = ()
    """The kinds of artifacts that the request asks for."""
    kind: EntityKind | None = None
    """The kind of the entity in the body; None without a body."""
    values: Values = MappingProxyType({})  # type: ignore[assignment]
    """The fields of the entity in the body, checked and converted."""

    @property
    def names_child(self) -> bool:
        """Whether a Kubeflow find request selects by name and parent's id, not by external id."""
        return bool(self.arguments.get("name") and self.arguments.get("parentResourceId"))

    def of_kind(self) -> EntityKind:
        """Returns the kind of the Kubeflow entity in the request's body, which must exist."""
        assert self.kind is not None  # noqa: S101 -- the route's parser reads a body
        return self.kind

    def reference(self, field: str) -> int | None:
        """Returns the id of another entity of Kubeflow's registry that a field of the body names;
        None if the body does not have the field."""
        text = self.values.get(field)
        return number(text, field) if text else None
