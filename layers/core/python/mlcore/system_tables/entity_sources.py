"""Declares for each kind of entity how its rows of system tables are read from DynamoDB."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from mlcore.system_tables import dataset_source, entity_kinds, job_source, registry_source
from mlcore.system_tables.entity_kinds import EntityRef

Row = Any
"""A named tuple with the columns of the table, without the AWS account, the partition and inherited
columns. Its first fields are the ids. Times are in milliseconds since 1970."""


class PartSource(NamedTuple):
    """Says how to read the rows of entities that are parts of others, such as the versions of
    registered models.

    A part is published only if its root (the entity of which it is a part) is; when a root is
    published, all its parts are read.
    """

    table: str
    find: Callable[[Collection[EntityRef]], Iterator[Row]]
    """Yields the rows of those of the referenced parts that exist; by BatchGetItem."""
    of_root: Callable[[EntityRef], Iterator[Row]]
    """Yields the rows of all parts of the referenced root; by Query."""
    inherited: tuple[str, ...]
    """The columns whose values are those of the root's row."""


class RootSource(NamedTuple):
    """Says how to read system table rows of a kind of entities that are not parts of others."""

    table: str
    find: Callable[[Collection[EntityRef], Mapping[str, str]], Iterator[Row]]
    """Yields the rows of those of the referenced entities that exist, each once; by BatchGetItem.
    The second argument has the workspaces of published rows by entity id, because an entity may
    have been moved from there."""
    listed: Callable[[], Iterator[EntityRef]]
    """Yields the references of all entities; the list may lag by seconds."""
    part: PartSource | None = None


ROOTS: Final = (
    RootSource(
        table=entity_kinds.MODELS.table,
        find=registry_source.find_models,
        listed=registry_source.model_refs,
        part=PartSource(
            table=entity_kinds.VERSIONS.table,
            find=registry_source.find_versions,
            of_root=registry_source.versions_of,
            inherited=("workspace_id", "name", "is_prompt"),
        ),
    ),
    RootSource(
        table=entity_kinds.DATASETS.table,
        find=dataset_source.find_datasets,
        listed=dataset_source.dataset_refs,
        part=PartSource(
            table=entity_kinds.RECORDS.table,
            find=dataset_source.find_records,
            of_root=dataset_source.records_of,
            inherited=("workspace_id",),
        ),
    ),
    RootSource(
        table=entity_kinds.JOBS.table,
        find=job_source.find_jobs,
        listed=job_source.job_refs,
    ),
)
