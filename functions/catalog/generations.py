"""Caches the parts of the model catalog's generations (one per load of it) in this process.

Only the parts that requests need are read. A generation never changes, so a cached part stays
valid; a request checks with one consistent GetItem whether the generation is still the current one
(except for the later pages of a list, whose token names the generation). The parts that a request
needs are fetched in parallel, and so are the models of a page. So a read takes at most three round
trips; a fourth if the generation in the page token is gone, and more if a load deletes a part.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import chain, repeat
from operator import sub
from typing import Any, Final, TypeVar

from mlcore.catalog import performance_candidates, property_columns
from mlcore.catalog.entry import CatalogEntry, of_stored, source_key
from mlcore.catalog.performance_candidates import Candidates
from mlcore.catalog.property_columns import EMPTY, MODEL_LEVEL, Column, Columns
from mlcore.process_cache import ProcessCache, SingleEntryCache
from mlcore.repos import catalog
from mlcore.repos.catalog import Current, PartLocation, unpacked

T = TypeVar("T")

_MAX_CACHED: Final = 20
"""How many results a generation caches. Each result may hold the positions of all models."""

MODELS: Final = "models"
SERVERS: Final = "servers"
OPTIONS: Final = "options"
CANDIDATES: Final = "candidates"

_NO_MODELS: Final[Mapping[str, Any]] = {
    **dict.fromkeys(
        ("sources", "source", "id", "name", "weight", "part", "parts", "artifactParts"), ()
    ),
    "artifacts": (0,),
}


class PartGone(Exception):
    """Raised if a stored part of a generation (the result of one load of Kubeflow's catalog) was
    deleted, because the catalog has been loaded again since."""


class Generation:
    """The models, artifacts and MCP servers that one load of Kubeflow's model catalog stored, and
    the loader's state: the catalog's sources, labels and named queries.

    A model's position is its index in the order of all models by name; an artifact's position is
    its index among the artifacts of all models in that order. Methods and properties that read a
    part raise PartGone if it has been deleted and is not cached.
    """

    def __init__(self, head: Current) -> None:
        self.id = head.generation
        self.state: Mapping[str, Any] = head.state
        self._directory: Mapping[str, Any] = unpacked(head.directory) or {}
        self._parts: dict[str, Any] = {}
        self._cache: dict[tuple[Hashable, ...], Any] = {}
        self.lost: list[bool] = []
        """A list that is not empty once a part was missing. It is a list so that
        :meth:`with_state` can share it."""

    def with_state(self, state: Mapping[str, Any]) -> Generation:
        """Returns this generation of the model catalog with another ``state`` (what the loader
        stores about the sources). It shares entries and caches with this generation, so the named
        queries must be the same."""
        if state == self.state:
            return self
        other = Generation.__new__(Generation)
        other.__dict__.update(self.__dict__)
        other.state = state
        return other

    def cached(self, key: tuple[Hashable, ...], compute: Callable[[], T]) -> T:
        """Returns the result that is cached under ``key``. If there is none, calls ``compute`` and
        caches its result. A generation's entries and named queries never change, so a result stays
        valid. Safe for threads."""
        entry: tuple[T] | None = self._cache.get(key)
        if entry is not None:
            return entry[0]
        result = compute()
        if len(self._cache) >= _MAX_CACHED:
            self._cache.clear()
        self._cache[key] = (result,)
        return result

    # -------------------------------------------------------------- sources

    def sources(self, workspace: str, asset_type: str | None = None) -> list[Mapping[str, Any]]:
        """Returns the model catalog's sources that a workspace sees: its own, and the shared ones.
        A workspace's source hides a shared one with the same type and id."""
        visible: dict[tuple[str, str], Mapping[str, Any]] = {}
        for source in self.state.get("sources", ()):
            key = (source["assetType"], source["id"])
            if source["workspace"] == workspace or (not source["workspace"] and key not in visible):
                visible[key] = source
        return [source for source in visible.values() if asset_type in (None, source["assetType"])]

    def source_keys(self, workspace: str, asset_type: str) -> frozenset[str]:
        """Returns, as keys, those of the model catalog's sources that :meth:`sources` returns for a
        workspace and an asset type (models or MCP servers)."""
        return frozenset(
            source_key(source["workspace"], source["id"])
            for source in self.sources(workspace, asset_type)
        )

    def queries(self, workspace: str, asset_type: str) -> Mapping[str, Any]:
        """Returns the named queries (saved filters) of an asset type that a workspace sees, by
        name: its own, and the shared ones without one of its own with the same name."""
        shared = self.state.get("queries", {})
        own = self.state.get("workspaceQueries", {}).get(workspace, {})
        return {**shared.get(asset_type, {}), **own.get(asset_type, {})}

    def owner_of_queries(self, workspace: str) -> str:
        """Returns a key for results that depend on named queries: the workspace, or "" if it has
        only the shared queries."""
        return workspace if workspace in self.state.get("workspaceQueries", {}) else ""

    # -------------------------------------------------------------- parts

    def fetch(self, names: Iterable[str]) -> None:
        """Reads those of the named parts of this generation (one load of the model catalog) that
        are not cached yet, in parallel, and caches them. A name without a stored part is not an
        error. Raises PartGone if a part was deleted."""
        missing = {name: self._locations(name) for name in names if name not in self._parts}
        if not missing:
            return
        contents = iter(self._read([part for places in missing.values() for part in places]))
        for name, places in missing.items():
            self._parts[name] = [next(contents) for _ in places]

    def _locations(self, name: str) -> list[PartLocation]:
        listed = self._directory.get(name, ())
        kind, _, rest = name.partition(":")
        if kind == "attribute":
            listed = self._directory.get("attributes", {}).get(rest)
        elif kind == "properties":
            listed = self._directory["properties"][int(rest)] if rest else None
        if not listed:
            return []
        return [(first, count) for first, count in (listed if name == SERVERS else [listed])]

    def _read(self, locations: Sequence[PartLocation]) -> list[Any]:
        contents = catalog.parts(self.id, locations) if locations else []
        if contents is None:
            self.lost.append(True)
            raise PartGone
        return contents

    def _part(self, name: str, default: Any) -> Any:
        if name not in self._parts:
            self.fetch([name])
        held = self._parts[name]
        return held[0] if held else default

    # -------------------------------------------------------------- values

    @staticmethod
    def attribute_part(level: str, name: str) -> str:
        """Returns the name, as :meth:`fetch` takes it, of the stored part with the values of one
        attribute of all models, or all artifacts, of the catalog."""
        return f"attribute:{property_columns.attribute_name(level, name)}"

    def properties_part(self, name: str) -> str:
        """Returns the name, as :meth:`fetch` takes it, of the stored part with the values that all
        models and artifacts of Kubeflow's catalog have for the custom property ``name``; the name
        of an empty part before the first load."""
        count = len(self._directory.get("properties", ()))
        return f"properties:{property_columns.bucket_of(name, count)}" if count else "properties"

    def attribute_values(self, level: str, name: str) -> Column:
        """Returns an attribute's values for all models, or all artifacts, of the model catalog."""
        models = self.models
        if level == MODEL_LEVEL and name in ("id", "name"):
            return Column(range(len(models["id"])), models[name])
        if level == MODEL_LEVEL and name in ("source_id", "sourceId"):
            ids = [key.partition("/")[2] for key in models["sources"]]
            source_ids = [ids[index] for index in models["source"]]
            return Column(range(len(source_ids)), source_ids)
        data = self._part(self.attribute_part(level, name), None)
        return EMPTY if data is None else property_columns.of_stored(data, self.count(level))

    def custom_values(self, level: str, name: str) -> Columns:
        """Returns the values of a custom property of all models, or of all artifacts, of the model
        catalog, by the type of the values."""
        by_type = self._part(self.properties_part(name), {}).get(level, {}).get(name, {})
        count = self.count(level)
        return {kind: property_columns.of_stored(data, count) for kind, data in by_type.items()}

    @property
    def models(self) -> Mapping[str, Any]:
        """Columns of all models in this generation of the model catalog. These lists have one
        member per model, in the order of positions: ``id``, ``name``, ``source`` (index into
        ``sources``), ``weight`` (estimated bytes of JSON), ``part`` (index into ``parts`` and
        ``artifactParts``). The list ``artifacts`` has the position of each model's first artifact,
        and at its end the number of artifacts."""
        models: Mapping[str, Any] = self._part(MODELS, _NO_MODELS)
        return models

    def count(self, level: str) -> int:
        """Returns how many models (``MODEL_LEVEL``) or how many artifacts of models
        (``ARTIFACT_LEVEL``) this generation of Kubeflow's model catalog has."""
        return len(self.models["id"]) if level == MODEL_LEVEL else int(self.models["artifacts"][-1])

    @property
    def owners(self) -> list[int]:
        """For each catalog artifact, by its position: the position of the model to which it
        belongs."""
        begins = self.models["artifacts"]
        return self.cached(
            ("owners",),
            lambda: [
                *chain.from_iterable(map(repeat, range(len(begins)), map(sub, begins[1:], begins)))
            ],
        )

    @property
    def candidates(self) -> Candidates:
        """The artifacts of all catalog models that a recommendation of a model compares, with the
        values (such as latency) that it compares by default."""
        data = self._part(CANDIDATES, None)
        return (
            performance_candidates.CandidateCollector().candidates()
            if data is None
            else performance_candidates.of_stored(data)
        )

    def options(self) -> list[Mapping[str, Any]]:
        """Returns, for each source and kind of entry of the model catalog, the values by which
        these entries can be filtered."""
        options: list[Mapping[str, Any]] = self._part(OPTIONS, [])
        return options

    # -------------------------------------------------------------- entries

    def model(
        self, workspace: str, source_id: str, name: str, *, with_artifacts: bool = False
    ) -> CatalogEntry | None:
        """Returns a model of the catalog by source and name; None if the workspace sees no such
        model."""
        for source in self.sources(workspace, "models"):
            if source["id"] == source_id:
                position = self._position(source_key(source["workspace"], source_id), name)
                if position is None:
                    return None
                return self.entries([position], with_artifacts=with_artifacts)[0]
        return None

    def _position(self, key: str, name: str) -> int | None:
        models = self.models
        names = models["name"]
        position = bisect_left(names, name)
        while position < len(names) and names[position] == name:
            if models["sources"][models["source"][position]] == key:
                return position
            position += 1
        return None

    def entries(
        self, positions: Sequence[int], *, with_artifacts: bool = False
    ) -> list[CatalogEntry]:
        """Returns the models at these positions of the model catalog's list. One round trip if
        some of them are not cached, and one before if the list itself is not."""
        models = self.models
        part_of = models["part"]
        by_part: dict[int, dict[int, CatalogEntry]] = {}
        missing = []
        for number in dict.fromkeys(part_of[position] for position in positions):
            cached = _entries.get((self.id, number, with_artifacts))
            if cached is None:
                missing.append(number)
            else:
                by_part[number] = cached
        locations = [models["parts"][number] for number in missing]
        if with_artifacts:
            locations += [models["artifactParts"][number] for number in missing]
        contents = self._read([tuple(part) for part in locations])
        for index, number in enumerate(missing):
            artifacts = contents[len(missing) + index] if with_artifacts else None
            entries = map(of_stored, contents[index], artifacts or repeat(()))
            by_part[number] = {entry.id: entry for entry in entries}
            _entries.put((self.id, number, with_artifacts), by_part[number])
        ids = models["id"]
        return [by_part[part_of[position]][ids[position]] for position in positions]

    @property
    def servers(self) -> Sequence[CatalogEntry]:
        """All MCP servers of this generation of the catalog, ordered by name."""
        if SERVERS not in self._parts:
            self.fetch([SERVERS])
        parts = self._parts[SERVERS]
        return self.cached((SERVERS,), lambda: [of_stored(data) for part in parts for data in part])

    def server(self, workspace: str, number: int) -> CatalogEntry | None:
        """Returns an MCP server of the catalog by its id; None if the workspace sees no such
        server."""
        by_id = self.cached(("servers by id",), lambda: {entry.id: entry for entry in self.servers})
        entry = by_id.get(number)
        if entry is None or entry.source not in self.source_keys(workspace, "mcp_servers"):
            return None
        return entry


_current: SingleEntryCache[str, Generation] = SingleEntryCache("catalog")
_earlier: SingleEntryCache[str, Generation] = SingleEntryCache("catalog that was replaced")
_entries: ProcessCache[tuple[str, int, bool], dict[int, CatalogEntry]] = ProcessCache(
    "models of the catalog", weigh=lambda part: sum(_weight(entry) for entry in part.values())
)


def _weight(entry: CatalogEntry) -> int:
    """Returns an estimate of the bytes of memory that an entry with its children takes."""
    texts = sum(len(value) for value in entry.fields.values() if isinstance(value, str))
    own = 1000 + texts + 150 * len(entry.types)
    return own + sum(1000 + 150 * len(child.types) for child in entry.children)


def current() -> Generation:
    """Returns the newest generation of the model catalog (the result of its last load). One round
    trip."""
    head = catalog.current()
    generation = _current.get(head.generation)
    if generation is None or generation.lost:
        generation = Generation(head)
        if replaced := _current.put(generation.id, generation):
            _earlier.put(*replaced)
    return generation.with_state(head.state)


def by_id(generation_id: str) -> Generation | None:
    """Returns a generation of the model catalog (the result of one load) by its id; None if it has
    been deleted. At most one round trip, none if the generation is cached."""
    generation = _current.get(generation_id) or _earlier.get(generation_id)
    if generation is None or generation.lost:
        head = catalog.earlier(generation_id)
        generation = None if head is None else Generation(head)
        if generation is not None:
            _earlier.put(generation_id, generation)
    return generation
