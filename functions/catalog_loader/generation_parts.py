"""Writes the result of a load of the model catalog (a generation) in parts, and reads its entries
back. There are parts with several models, artifacts or MCP servers each, so that a page reads few
of them; one part with the list of all models; parts with the values of attributes and custom
properties, for filters and sorting; and one part each with filter options and with the artifacts
that recommendations compare."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, Final

from catalog_loader.source_reading import SourceContent
from mlcore.catalog import filter_options, performance_candidates, property_columns
from mlcore.catalog.entry import ASSET_TYPES, MODEL, CatalogEntry, StoredEntry, of_stored, stored
from mlcore.catalog.property_columns import ColumnCollector
from mlcore.repos.catalog import Current, PartLocation, Store, parts, unpacked

_PART_BYTES: Final = 48_000
"""A part is full when its models and their artifacts have this many bytes of JSON. A part with
models and the part with their artifacts have the same number. Parts are small, so that a page whose
models are in many parts reads few bytes for each."""

FORMAT: Final = 2
"""Raise this number when the form of the parts or of the state changes: it is in the fingerprint of
the catalog's files, so the next load then writes them again."""


def store_parts(store: Store, reads: Sequence[SourceContent]) -> dict[str, Any]:
    """Stores the entries that a load of the model catalog has read, as the parts of a new
    generation of the catalog. Returns the directory of the generation: where its parts are."""
    entries = sorted(_numbered(reads), key=lambda entry: (entry.name, entry.id))
    models = [entry for entry in entries if entry.kind == MODEL]
    servers = [entry for entry in entries if entry.kind != MODEL]
    gathering = ColumnCollector()
    candidate_gathering = performance_candidates.CandidateCollector()
    for position, model in enumerate(models):
        gathering.add(model)
        if measured := performance_candidates.of_model(
            model, performance_candidates.PropertyNames()
        ):
            candidate_gathering.add(position, measured)
    listing = _Models(store, models)
    keys = sorted({model.source for model in models})
    index_of = {key: index for index, key in enumerate(keys)}
    columns_of_models = {
        "sources": keys,
        "source": [index_of[model.source] for model in models],
        "id": [model.id for model in models],
        "name": [model.name for model in models],
        "weight": listing.weights,
        "part": listing.numbers,
        "parts": listing.parts,
        "artifactParts": listing.artifact_parts,
        "artifacts": property_columns.offsets(models),
    }
    all_options = [
        {
            "source": read.source.key,
            "kind": kind,
            "options": filter_options.of_entries(kind, read.entries),
        }
        for read in reads
        if (kind := ASSET_TYPES[read.source.asset_type])
    ]
    attributes = {name: store(text) for name, text in gathering.attributes()}
    return {
        "models": store(json.dumps(columns_of_models, separators=(",", ":"))),
        "servers": list(_stored(store, servers)),
        "options": store(json.dumps(all_options, separators=(",", ":"))),
        "attributes": attributes,
        "candidates": store(performance_candidates.stored(candidate_gathering.candidates())),
        "properties": [store(text) for text in gathering.buckets()],
    }


def read_entries(before: Current) -> Iterator[CatalogEntry]:
    """Yields all entries (models and MCP servers) of a generation of the model catalog (the result
    of one load); none if the generation has been deleted."""
    directory = unpacked(before.directory)
    if directory is None:
        return
    for entry_part in directory["servers"]:
        for part in parts(before.generation, [tuple(entry_part)]) or ():
            yield from map(of_stored, part)
    contents = parts(before.generation, [tuple(directory["models"])])
    if not contents:
        return
    listed = contents[0]
    pairs = zip(listed["parts"], listed["artifactParts"], strict=True)
    locations = [tuple(entry_part) for pair in pairs for entry_part in pair]
    for begin in range(0, len(locations), 50):
        chunk = iter(parts(before.generation, locations[begin : begin + 50]) or ())
        for models, artifacts in zip(chunk, chunk, strict=True):
            yield from map(of_stored, models, artifacts or repeat(()))


class _Models:
    """Stores models in parts with several models each, and the artifacts of each part's models in
    another part."""

    def __init__(self, store: Store, models: Iterable[CatalogEntry]) -> None:
        self.parts: list[PartLocation] = []
        self.artifact_parts: list[PartLocation] = []
        """The artifacts of the models in the part of the same number; (0, 0) if they have none."""
        self.weights: list[int] = []
        """For each model an estimate of the bytes of its JSON in responses."""
        self.numbers: list[int] = []
        """For each model the number of its part."""
        batch: list[StoredEntry] = []
        size = 0
        for model in models:
            texts = stored(model)
            self.weights.append(texts.shown)
            self.numbers.append(len(self.parts))
            batch.append(texts)
            size += len(texts.own) + len(texts.children)
            if size >= _PART_BYTES:
                self._store(store, batch)
                batch, size = [], 0
        if batch:
            self._store(store, batch)

    def _store(self, store: Store, batch: Sequence[StoredEntry]) -> None:
        self.parts.append(store(_array(texts.own for texts in batch)))
        have_artifacts = any(texts.children for texts in batch)
        children = _array(texts.children or "[]" for texts in batch)
        self.artifact_parts.append(store(children) if have_artifacts else (0, 0))


def _array(texts: Iterable[str]) -> str:
    return f"[{','.join(texts)}]"


def _stored(store: Store, servers: Iterable[CatalogEntry]) -> Iterator[PartLocation]:
    """Stores MCP servers with their tools, several in a part; yields the location of each part."""
    batch: list[str] = []
    size = 0
    for server in servers:
        batch.append(stored(server).whole)
        size += len(batch[-1])
        if size >= _PART_BYTES:
            yield store(_array(batch))
            batch, size = [], 0
    if batch:
        yield store(_array(batch))


def _numbered(reads: Sequence[SourceContent]) -> Iterator[CatalogEntry]:
    """Yields the entries of all sources with unique ids: an entry whose id is taken gets the next
    free id."""
    taken: set[int] = set()
    for read in sorted(reads, key=lambda read: (read.source.key, read.source.asset_type)):
        for entry in read.entries:
            number = entry.id
            while number in taken:
                number = number % 999_999_999 + 1
            taken.add(number)
            yield entry if number == entry.id else entry._replace(id=number)
