"""A parsed request to Kubeflow's registry: the object that the policy decides on and that the
function gets."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from mlcore.kubeflow.body import Values, number
from mlcore.kubeflow.kinds import Kind


class Asked(NamedTuple):
    """A request, parsed."""

    id: int = 0
    """The entity that the path names."""
    serve_id: int = 0
    """The serve model that the path names below an inference service."""
    arguments: Mapping[str, str] = MappingProxyType({})
    """The query, without arguments that are empty."""
    parent: int = 0
    """The parent that a find names beside a name."""
    artifact_kinds: tuple[str, ...] = ()
    """The kinds of artifacts that are asked for."""
    kind: Kind | None = None
    """Of the entity in the body; None without a body."""
    values: Values = MappingProxyType({})  # type: ignore[assignment]
    """The fields of the entity in the body, checked and converted."""

    @property
    def names_child(self) -> bool:
        """Whether a find names a child by its name and its parent, and not by its external id."""
        return bool(self.arguments.get("name") and self.arguments.get("parentResourceId"))

    def of_kind(self) -> Kind:
        """The kind of the entity in the body."""
        assert self.kind is not None  # noqa: S101 -- the route's parser reads a body
        return self.kind

    def reference(self, field: str) -> int | None:
        """The number in a field of the body that holds an id; None without one."""
        text = self.values.get(field)
        return number(text, field) if text else None
