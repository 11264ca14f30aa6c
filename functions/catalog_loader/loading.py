"""Loads the catalog: reads its sources, writes a generation beside the one that is read, and
switches to it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from catalog_loader import configuration, parts, reading, yaml_text
from catalog_loader.configuration import Configuration, Source
from catalog_loader.fields import Wrong
from catalog_loader.files import Files, OutsideCatalog
from catalog_loader.reading import DISABLED, ERROR, MOST_ERROR, PARTIAL, Read
from catalog_loader.yaml_text import NotYaml
from mlcore.ids import now_ms
from mlcore.observability import logger
from mlcore.repos import catalog
from mlcore.repos.catalog import Current
from mlcore.settle import settle


class Report(NamedTuple):
    """What a call of the loader did."""

    generation: str
    changed: bool
    models: int
    servers: int
    errors: int


def load(files: Files, *, force: bool = False) -> Report:
    """Brings the catalog up to its files, and to the Hub where a source on it is due; without
    effect where nothing has changed.

    Args:
        force: everything is read whether or not it has changed.

    Raises:
        TemporarilyUnavailable: others load at the same time, again and again.
    """
    return settle("catalog", lambda: _attempt(files, force))


def _attempt(files: Files, force: bool) -> Report:
    before = catalog.current()
    now = now_ms()
    names = files.names()
    mark = _mark(names)
    if not before.version and not configuration.named(names):
        return _report(before, changed=False)
    due = any((one.get("due") or now + 1) <= now for one in before.state.get("sources", ()))
    if before.version and not force and not due and before.state.get("mark") == mark:
        catalog.sweep(before, now, unfinished=False)
        return _report(before, changed=False)
    texts: dict[str, Any] = {}

    def text(name: str) -> Any:
        if name not in texts:
            texts[name] = yaml_text.parse(files.read(name))
        return texts[name]

    try:
        found = configuration.merged((name, text(name)) for name in configuration.named(names))
    except (Wrong, NotYaml, OutsideCatalog) as error:
        logger.warning("the catalog's sources cannot be read: %s", error)
        after = catalog.renew(before, _refused(before.state, mark, str(error)))
        return _report(after, changed=False)
    known = _states(before)
    reads = []
    for source in found.sources:
        told = known.get(_place(source), {})
        read = None if force else reading.unread(source, told, now)
        reads.append(read or reading.read(source, text, names, told, now))
    texts.clear()
    reads = reading.with_kept(parts.entries_of(before), reads)
    state = _state(found, reads, mark)
    after = catalog.write(before, lambda store: parts.fill(store, reads), state)
    catalog.sweep(after, now_ms(), unfinished=True)
    return _report(after, changed=True)


def _place(source: Source) -> tuple[str, str, str]:
    return source.workspace, source.asset_type, source.id


def _states(before: Current) -> dict[tuple[str, str, str], Mapping[str, Any]]:
    """What a generation says of each source."""
    return {
        (one["workspace"], one["assetType"], one["id"]): one
        for one in before.state.get("sources", ())
    }


def _mark(names: Mapping[str, str]) -> str:
    """Changes with every file of the catalog."""
    text = json.dumps([parts.FORMAT, sorted(names.items())])
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _report(current: Current, *, changed: bool) -> Report:
    state = current.state
    sources = state.get("sources", ())
    return Report(
        current.generation,
        changed,
        sum(one["count"] for one in sources if one["assetType"] == "models"),
        sum(one["count"] for one in sources if one["assetType"] != "models"),
        sum(one["status"] in (ERROR, PARTIAL) for one in sources) + bool(state.get("error")),
    )


def _refused(state: Mapping[str, Any], mark: str, error: str) -> dict[str, Any]:
    """The state of the generation that stays, of which every source says why it stays."""
    sources = [
        {**one, "error": error[:MOST_ERROR], "status": ERROR} if one["status"] != DISABLED else one
        for one in state.get("sources", ())
    ]
    return {**state, "mark": mark, "sources": sources, "error": error[:MOST_ERROR]}


# ------------------------------------------------------------------ a generation


def _state(found: Configuration, reads: Sequence[Read], mark: str) -> dict[str, Any]:
    return {
        "mark": mark,
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
        "labels": list(found.labels),
        "queries": found.queries,
    }
