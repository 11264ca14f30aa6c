"""Loads the catalog: reads its files, writes a generation beside the one that is read, and switches
to it. A source that cannot be read keeps what it had, and says why."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from catalog_loader import configuration, contents, yaml_text
from catalog_loader.configuration import Configuration, Source
from catalog_loader.fields import Wrong
from catalog_loader.files import Files, OutsideCatalog, find
from catalog_loader.yaml_text import NotYaml
from mlcore.catalog.entry import (
    ASSET_TYPES,
    Entry,
    Forms,
    of_stored,
    stored,
)
from mlcore.ids import now_ms
from mlcore.observability import logger
from mlcore.repos import catalog
from mlcore.repos.catalog import Current
from mlcore.settle import settle

AVAILABLE: Final = "available"
PARTIAL: Final = "partially-available"
ERROR: Final = "error"
DISABLED: Final = "disabled"

PATH: Final = "yamlCatalogPath"
_SHARD_BYTES: Final = 1_500_000
"""Of JSON, of which a shard holds about so much; it is far less when it is packed."""
_LARGEST: Final = 370_000
"""Bytes of a packed entry; a shard holds at least one."""
_MOST_ERROR: Final = 1000


class Report(NamedTuple):
    """What a call of the loader did."""

    generation: str
    changed: bool
    models: int
    servers: int
    errors: int


class Read(NamedTuple):
    """A source with what was found there."""

    source: Source
    status: str
    error: str
    entries: Sequence[Entry]
    broken: bool = False
    """What it had is kept."""


def load(files: Files, *, force: bool = False) -> Report:
    """Brings the catalog up to its files; without effect where they have not changed.

    Raises:
        TemporarilyUnavailable: others load at the same time, again and again.
    """
    return settle("catalog", lambda: _attempt(files, force))


def _attempt(files: Files, force: bool) -> Report:
    before = catalog.current()
    names = files.names()
    mark = _mark(names)
    if not before.version and not configuration.named(names):
        return _report(before, changed=False)
    if before.version and not force and before.state.get("mark") == mark:
        catalog.sweep(before, now_ms(), unfinished=False)
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
    reads = [_read(source, text, names) for source in found.sources]
    reads = _with_kept(before, reads)
    after = catalog.write(before, _shards(reads), _state(found, reads, mark))
    catalog.sweep(after, now_ms(), unfinished=True)
    return _report(after, changed=True)


def _mark(names: Mapping[str, str]) -> str:
    """Changes with every file of the catalog."""
    text = json.dumps(sorted(names.items()))
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
        {**one, "error": error[:_MOST_ERROR], "status": ERROR} if one["status"] != DISABLED else one
        for one in state.get("sources", ())
    ]
    return {**state, "mark": mark, "sources": sources, "error": error[:_MOST_ERROR]}


# ------------------------------------------------------------------ sources


def _read(source: Source, text: Callable[[str], Any], names: dict[str, str]) -> Read:
    if not source.enabled:
        return Read(source, DISABLED, "", ())
    try:
        return Read(source, AVAILABLE, "", entries_of(source, text, names))
    except (Wrong, NotYaml, OutsideCatalog) as error:
        return Read(source, ERROR, str(error)[:_MOST_ERROR], (), broken=True)


def entries_of(source: Source, text: Callable[[str], Any], names: dict[str, str]) -> list[Entry]:
    """What a source shows. Raises Wrong, NotYaml, OutsideCatalog."""
    if source.type in ("hf", "huggingface"):
        raise Wrong("Hugging Face sources are not loaded by this version")
    if source.type != configuration.YAML:
        raise Wrong(f"unknown source type {source.type!r}")
    path = source.properties.get(PATH)
    if not isinstance(path, str) or not path:
        raise Wrong(f"missing {PATH} string property")
    data = text(find(path, source.folder, names))
    return shown(source, data)


def shown(source: Source, data: Any) -> list[Entry]:
    """The entries of a file that a source includes. Raises Wrong."""
    make = contents.models if source.asset_type == "models" else contents.servers
    found = [entry for entry in make(source.key, data) if source.includes(entry.name)]
    for entry in found:
        if _weight(entry) > catalog.SHARD_BYTES and len(catalog.packed(stored(entry))) > _LARGEST:
            raise Wrong(f"{entry.name!r} is too large: {_LARGEST} bytes, compressed, are the most")
    return found


def _with_kept(before: Current, reads: list[Read]) -> list[Read]:
    """Broken sources with what they had in the generation before."""
    broken = {read.source.key: read.source.asset_type for read in reads if read.broken}
    if not broken or not before.generation:
        return reads
    kept: dict[tuple[str, str], list[Entry]] = {}
    for shard in catalog.shards(before.generation, before.shards) or ():
        forms: Forms = {}
        for part in shard:
            if part["s"] in broken and ASSET_TYPES[broken[part["s"]]] == part["k"]:
                entries = kept.setdefault((part["s"], part["k"]), [])
                entries += [of_stored(part["k"], part["s"], one, forms) for one in part["e"]]
    found = []
    for read in reads:
        place = (read.source.key, ASSET_TYPES[read.source.asset_type])
        if read.broken and kept.get(place):
            read = read._replace(entries=kept[place])  # noqa: PLW2901
        found.append(read)
    return found


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
            }
            for read in reads
        ],
        "labels": list(found.labels),
        "queries": found.queries,
    }


def _shards(reads: Sequence[Read]) -> Iterator[bytes]:
    """The packed shards: lists of ``{"k": kind, "s": source, "e": [entries]}``, by name."""
    taken: set[int] = set()
    entries = [
        _numbered(entry, taken)
        for read in sorted(reads, key=lambda read: read.source.key)
        for entry in read.entries
    ]
    entries.sort(key=lambda entry: (entry.kind, entry.name, entry.source))
    part: list[Entry] = []
    weight = 0
    for entry in entries:
        part.append(entry)
        weight += _weight(entry)
        if weight > _SHARD_BYTES:
            yield from _packed(part)
            part, weight = [], 0
    if part:
        yield from _packed(part)


def _numbered(entry: Entry, taken: set[int]) -> Entry:
    """The entry, with the next free id where another has taken its own."""
    number = entry.id
    while number in taken:
        number = number % 999_999_999 + 1
    taken.add(number)
    return entry if number == entry.id else entry._replace(id=number)


def _weight(entry: Entry) -> int:
    return 200 + len(json.dumps(stored(entry)))


def _packed(part: Sequence[Entry]) -> Iterator[bytes]:
    """One shard, or more where it is too large for an item."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for entry in part:
        groups.setdefault((entry.kind, entry.source), []).append(stored(entry))
    value = [{"k": kind, "s": source, "e": list_} for (kind, source), list_ in groups.items()]
    blob = catalog.packed(value)
    if len(blob) <= catalog.SHARD_BYTES:
        yield blob
    elif len(part) > 1:
        half = len(part) // 2
        yield from _packed(part[:half])
        yield from _packed(part[half:])
    else:
        raise AssertionError  # `shown` refuses what does not fit
