"""Loads the model catalog: reads its sources, writes a new generation beside the current one, and
switches to the new one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from catalog_loader import generation_parts, source_reading, yaml_parsing
from catalog_loader.configuration import (
    Configuration,
    ConfiguredSource,
    defining_files,
    merge,
)
from catalog_loader.field_checks import InvalidField
from catalog_loader.file_store import Files, OutsideCatalog
from catalog_loader.source_reading import DISABLED, ERROR, MAX_ERROR_LENGTH, PARTIAL, SourceContent
from catalog_loader.yaml_parsing import NotYaml
from mlcore.ids import now_ms
from mlcore.observability import logger
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos import catalog
from mlcore.repos.catalog import Current


class LoadReport(NamedTuple):
    """The result of a load of the model catalog."""

    generation: str
    changed: bool
    models: int
    servers: int
    errors: int


def load(files: Files, *, force: bool = False) -> LoadReport:
    """Updates the model catalog from its YAML files, and from the Hugging Face Hub if a source
    there is due. If nothing has changed, only deletes generations that can no longer be read.

    Args:
        force: read all sources whether or not they have changed.

    Raises:
        RequestLimitExceeded: in each attempt, a concurrent load stored its result first.
    """
    return retry_on_conflict("catalog", lambda: _attempt(files, force))


def _attempt(files: Files, force: bool) -> LoadReport:
    before = catalog.current()
    now = now_ms()
    names = files.names()
    fingerprint = _fingerprint(names)
    if not before.version and not defining_files(names):
        return _report(before, changed=False)
    due = any((source.get("due") or now + 1) <= now for source in before.state.get("sources", ()))
    if before.version and not force and not due and before.state.get("mark") == fingerprint:
        catalog.sweep(before, now, unfinished=False)
        return _report(before, changed=False)
    texts: dict[str, Any] = {}

    def text(name: str) -> Any:
        if name not in texts:
            texts[name] = yaml_parsing.parse(files.read(name))
        return texts[name]

    try:
        configuration = merge((name, text(name)) for name in defining_files(names))
    except (InvalidField, NotYaml, OutsideCatalog) as error:
        logger.warning("the catalog's sources cannot be read: %s", error)
        after = catalog.renew(before, _state_after_error(before.state, fingerprint, str(error)))
        return _report(after, changed=False)
    states = _source_states(before)
    reads = []
    for source in configuration.sources:
        state_before = states.get(_state_key(source), {})
        read = None if force else source_reading.skip_until_due(source, state_before, now)
        reads.append(read or source_reading.read(source, text, names, state_before, now))
    texts.clear()
    reads = source_reading.with_previous_entries(generation_parts.read_entries(before), reads)
    state = _state(configuration, reads, fingerprint)
    after = catalog.write(before, lambda store: generation_parts.store_parts(store, reads), state)
    catalog.sweep(after, now_ms(), unfinished=True)
    return _report(after, changed=True)


def _state_key(source: ConfiguredSource) -> tuple[str, str, str]:
    return source.workspace, source.asset_type, source.id


def _source_states(before: Current) -> dict[tuple[str, str, str], Mapping[str, Any]]:
    """Returns the state that a generation stores of each source."""
    return {
        (source["workspace"], source["assetType"], source["id"]): source
        for source in before.state.get("sources", ())
    }


def _fingerprint(names: Mapping[str, str]) -> str:
    """Returns a digest that changes when any file of the catalog changes."""
    text = json.dumps([generation_parts.FORMAT, sorted(names.items())])
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _report(current: Current, *, changed: bool) -> LoadReport:
    state = current.state
    sources = state.get("sources", ())
    return LoadReport(
        current.generation,
        changed,
        sum(source["count"] for source in sources if source["assetType"] == "models"),
        sum(source["count"] for source in sources if source["assetType"] != "models"),
        sum(source["status"] in (ERROR, PARTIAL) for source in sources) + bool(state.get("error")),
    )


def _state_after_error(state: Mapping[str, Any], fingerprint: str, error: str) -> dict[str, Any]:
    """Returns the state of the current generation after the files that define its sources could not
    be read: every enabled source gets the error."""
    sources = [
        source
        if source["status"] == DISABLED
        else {**source, "error": error[:MAX_ERROR_LENGTH], "status": ERROR}
        for source in state.get("sources", ())
    ]
    return {**state, "mark": fingerprint, "sources": sources, "error": error[:MAX_ERROR_LENGTH]}


# ------------------------------------------------------------------ a generation


def _state(
    configuration: Configuration, reads: Sequence[SourceContent], fingerprint: str
) -> dict[str, Any]:
    return {
        "mark": fingerprint,
        "sources": [
            {
                "id": read.source.id,
                "workspace": read.source.workspace,
                "assetType": read.source.asset_type,
                "name": read.source.name,
                "enabled": read.source.enabled,
                "labels": list(read.source.labels),
                "status": read.status,
                "error": read.error,
                "count": len(read.entries),
                **({"definition": read.definition, "due": read.due} if read.due else {}),
                **({"file": read.file, "loaded": read.loaded} if read.file else {}),
            }
            for read in reads
        ],
        "labels": list(configuration.labels),
        "queries": configuration.queries,
        "workspaceQueries": configuration.workspace_queries,
    }
