"""Reads registered models and their versions from the table, strongly consistently, for the system
tables. Writes nothing.

A model is found by its home (the partition of its versions), which stays when the model is renamed
or moved to another workspace. The id of a model is its incarnation.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.table import table
from mlcore.models.registry import ModelHome, ModelVersion, RegisteredModel
from mlcore.repos import document
from mlcore.repos.registry import model_versions, registered_models
from mlcore.repos.workspaces import workspaces
from mlcore.system_tables.entity_kinds import MODELS, EntityRef
from mlcore.system_tables.registry_rows import ModelRow, VersionRow, model_row, version_row
from mlcore.system_tables.run_source import in_parts


def find_models(refs: Collection[EntityRef], _: Mapping[str, str]) -> Iterator[ModelRow]:
    """Yields the system table rows of the existing registered models among those given. Sends two
    BatchGetItem per hundred models, two more if models were renamed in between, and a Query for
    each map (such as a model's tags) that did not fit into its model's item."""
    for part in in_parts(refs):
        pending = dict.fromkeys(part, -1)
        while pending:
            pending = yield from _where_homes_say(pending)


def _where_homes_say(
    pending: Mapping[EntityRef, int],
) -> Generator[ModelRow, None, dict[EntityRef, int]]:
    """Yields the rows of the models that are at the keys that their homes name. Returns the models
    that were renamed after their home was read, with the version of the home, for another attempt.
    Deleted models are left out.

    Args:
        pending: references of models, with the version of the home as of the last attempt.
    """
    homes = table.batch_get([keys.model_home(home) for _, home in pending])
    owners = {
        ref: owner
        for ref, raw in zip(pending, homes, strict=True)
        if raw is not None
        and (owner := ModelHome.of(raw)).incarnation == ref[0]
        and owner.version != pending[ref]  # an unchanged home names a key without the model
    }
    items = table.batch_get([keys.model_at(owner.model_pk) for owner in owners.values()])
    moved: dict[EntityRef, int] = {}
    for (ref, owner), item in zip(owners.items(), items, strict=True):
        if item is not None and RegisteredModel.of(item).incarnation == ref[0]:
            yield model_row(registered_models.of_item(item))
        else:
            moved[ref] = owner.version
    return moved


def find_versions(refs: Collection[EntityRef]) -> Iterator[VersionRow]:
    """Yields the rows of ``model_versions`` for those of the given versions that exist. Sends one
    BatchGetItem per hundred versions, and a Query for each one whose tags have overflowed."""
    for part in in_parts(refs):
        items = table.batch_get([keys.model_version(home, int(number)) for _, home, number in part])
        for ref, item in zip(part, items, strict=True):
            if item is not None and (row := _version(item, ref[0])) is not None:
                yield row


def versions_of(ref: EntityRef) -> Iterator[VersionRow]:
    """Yields the rows of the system table ``model_versions`` for a registered model's versions,
    without deleted ones; one Query per MB, and one for each version whose tags have overflowed."""
    incarnation, home = ref
    for item in table.query_all(home, prefix=keys.model_version_prefix()):
        if ModelVersion.of(item).type == ModelVersion.pattern.name:
            row = _version(item, incarnation)
            if row is not None:
                yield row


def _version(item: Raw, incarnation: str) -> VersionRow | None:
    """Returns the row of a version; None for a deleted one, or one of another model."""
    version = ModelVersion.of(item)
    if version.incarnation != incarnation or version.current_stage == model_versions.DELETED:
        return None
    owner = (version.PK, str(version.model_version))
    return version_row(document.load(item, owner, model_versions.MAPS))


def model_refs() -> Iterator[EntityRef]:
    """Yields the references (id, partition of the versions) of all registered models and prompts;
    the list may lag by seconds."""
    for workspace in workspaces.names():
        for part in in_parts(key for _, key in registered_models.listed(workspace)):
            for item in table.batch_get(part):
                if item is not None:
                    yield MODELS.ref_of(item)
