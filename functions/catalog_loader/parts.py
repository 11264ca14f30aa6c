"""The parts of a generation, as they are written: the models and MCP servers themselves, some in a
part, so that a page reads few; the list of all models; and their values by name, for filters and
orders."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, Final

from catalog_loader.reading import Read
from mlcore.catalog import candidates, columns, options
from mlcore.catalog.columns import Gathering
from mlcore.catalog.entry import ASSET_TYPES, MODEL, Entry, Stored, of_stored, stored
from mlcore.repos.catalog import Current, Place, Store, parts, unpacked

_PART_BYTES: Final = 48_000
"""Of JSON, from which on a part with models or their artifacts is full. Of both there are as many,
and about the same models, so that a page that is in no order of theirs reads few bytes for each."""

FORMAT: Final = 4
"""Changes with what this module writes, so that what an earlier version wrote is written anew."""


def fill(store: Store, reads: Sequence[Read]) -> dict[str, Any]:
    """Stores the parts of a generation; answers its directory."""
    entries = sorted(_numbered(reads), key=lambda entry: (entry.name, entry.id))
    models = [entry for entry in entries if entry.kind == MODEL]
    servers = [entry for entry in entries if entry.kind != MODEL]
    gathering = Gathering()
    weighed = candidates.Gathering()
    for at, model in enumerate(models):
        gathering.add(model)
        if measured := candidates.of_model(model, candidates.Names()):
            weighed.add(at, measured)
    listing = _Models(store, models)
    keys = sorted({model.source for model in models})
    place_of = {key: at for at, key in enumerate(keys)}
    every = {
        "sources": keys,
        "source": [place_of[model.source] for model in models],
        "id": [model.id for model in models],
        "name": [model.name for model in models],
        "weight": listing.weights,
        "part": listing.numbers,
        "parts": listing.parts,
        "artifactParts": listing.artifact_parts,
        "artifacts": columns.offsets(models),
    }
    chosen = [
        {"source": read.source.key, "kind": kind, "options": options.of_entries(kind, read.entries)}
        for read in reads
        if (kind := ASSET_TYPES[read.source.asset_type])
    ]
    attributes = {name: store(text) for name, text in gathering.attributes()}
    return {
        "models": store(json.dumps(every, separators=(",", ":"))),
        "servers": list(_stored(store, servers)),
        "options": store(json.dumps(chosen, separators=(",", ":"))),
        "attributes": attributes,
        "candidates": store(candidates.stored(weighed.candidates())),
        "properties": [store(text) for text in gathering.buckets()],
    }


def entries_of(before: Current) -> Iterator[Entry]:
    """All that a generation holds; nothing where it is no longer there."""
    directory = unpacked(before.directory)
    if directory is None:
        return
    for place in directory["servers"]:
        for part in parts(before.generation, [tuple(place)]) or ():
            yield from map(of_stored, part)
    found = parts(before.generation, [tuple(directory["models"])])
    if not found:
        return
    listed = found[0]
    # Earlier versions stored artifacts with their models.
    apart = listed.get("artifactParts") or [(0, 0)] * len(listed["parts"])
    places = [tuple(each) for pair in zip(listed["parts"], apart, strict=True) for each in pair]
    for begin in range(0, len(places), 50):
        read = iter(parts(before.generation, places[begin : begin + 50]) or ())
        for models, artifacts in zip(read, read, strict=True):
            yield from map(of_stored, models, artifacts or repeat(()))


class _Models:
    """Stores models, some in a part, and their artifacts in as many other parts."""

    def __init__(self, store: Store, models: Iterable[Entry]) -> None:
        self.parts: list[Place] = []
        self.artifact_parts: list[Place] = []
        """Of the models in the part of the same number; (0, 0) where none has any."""
        self.weights: list[int] = []
        """By model: what it weighs where it is shown."""
        self.numbers: list[int] = []
        """By model: its part."""
        waiting: list[Stored] = []
        size = 0
        for model in models:
            one = stored(model)
            self.weights.append(one.shown)
            self.numbers.append(len(self.parts))
            waiting.append(one)
            size += len(one.own) + len(one.children)
            if size >= _PART_BYTES:
                self._store(store, waiting)
                waiting, size = [], 0
        if waiting:
            self._store(store, waiting)

    def _store(self, store: Store, waiting: Sequence[Stored]) -> None:
        self.parts.append(store(_array(one.own for one in waiting)))
        some = any(one.children for one in waiting)
        children = _array(one.children or "[]" for one in waiting)
        self.artifact_parts.append(store(children) if some else (0, 0))


def _array(texts: Iterable[str]) -> str:
    return f"[{','.join(texts)}]"


def _stored(store: Store, servers: Iterable[Entry]) -> Iterator[Place]:
    """Stores MCP servers with their tools, some in a part, and answers where."""
    waiting: list[str] = []
    size = 0
    for server in servers:
        waiting.append(stored(server).whole)
        size += len(waiting[-1])
        if size >= _PART_BYTES:
            yield store(_array(waiting))
            waiting, size = [], 0
    if waiting:
        yield store(_array(waiting))


def _numbered(reads: Sequence[Read]) -> Iterator[Entry]:
    """The entries of all sources, each with the next free id where another has taken its own."""
    taken: set[int] = set()
    for read in sorted(reads, key=lambda read: (read.source.key, read.source.asset_type)):
        for entry in read.entries:
            number = entry.id
            while number in taken:
                number = number % 999_999_999 + 1
            taken.add(number)
            yield entry if number == entry.id else entry._replace(id=number)
