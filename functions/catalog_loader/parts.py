"""The parts of a generation, as they are written: the models and MCP servers themselves, some in a
part, so that a page reads few; the list of all models; and their values by name, for filters and
orders."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from catalog_loader.reading import Read
from mlcore.catalog import candidates, columns, options
from mlcore.catalog.columns import Gathering
from mlcore.catalog.entry import ASSET_TYPES, MODEL, Entry, stored
from mlcore.repos.catalog import Current, Place, Store, parts, unpacked

_PART_BYTES: Final = 48_000
"""Of JSON, from which on a part with models is full: about a dozen of them, a page that is in no
order of theirs reads one for each of its models."""

FORMAT: Final = 3
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
    weights: list[int] = []
    numbers: list[int] = []
    places = list(_stored(store, models, weights, numbers))
    server_places = list(_stored(store, servers, [], []))
    keys = sorted({model.source for model in models})
    place_of = {key: at for at, key in enumerate(keys)}
    every = {
        "sources": keys,
        "source": [place_of[model.source] for model in models],
        "id": [model.id for model in models],
        "name": [model.name for model in models],
        "weight": weights,
        "part": numbers,
        "parts": places,
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
        "servers": server_places,
        "options": store(json.dumps(chosen, separators=(",", ":"))),
        "attributes": attributes,
        "candidates": store(candidates.stored(weighed.candidates())),
        "properties": [store(text) for text in gathering.buckets()],
    }


def entries_of(before: Current) -> Iterator[Mapping[str, Any]]:
    """All that a generation holds, as it is stored; nothing where it is no longer there."""
    directory = unpacked(before.directory)
    if directory is None:
        return
    found = parts(before.generation, [tuple(directory["models"])])
    places = list(directory["servers"])
    if found:
        places += found[0]["parts"]
    for begin in range(0, len(places), 50):
        some = [tuple(place) for place in places[begin : begin + 50]]
        for part in parts(before.generation, some) or ():
            yield from part


def _stored(
    store: Store, entries: Iterable[Entry], weights: list[int], numbers: list[int]
) -> Iterator[Place]:
    """Stores entries, some in a part, and answers where; adds of each what it weighs where it is
    shown, and the number of its part."""
    waiting: list[str] = []
    size = number = 0
    for entry in entries:
        text, weight = stored(entry)
        weights.append(weight)
        numbers.append(number)
        waiting.append(text)
        size += len(text)
        if size >= _PART_BYTES:
            yield store(f"[{','.join(waiting)}]")
            waiting, size, number = [], 0, number + 1
    if waiting:
        yield store(f"[{','.join(waiting)}]")


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
