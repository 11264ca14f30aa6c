"""Reads the entries of the model catalog's sources: from YAML files, or from the Hugging Face Hub.
A source that cannot be read keeps its entries of the previous load of the catalog, and has an
error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from catalog_loader import configuration, entry_parsing, hugging_face
from catalog_loader.configuration import ConfiguredSource
from catalog_loader.field_checks import InvalidField
from catalog_loader.file_store import OutsideCatalog, resolve
from catalog_loader.hugging_face import NotReached
from catalog_loader.yaml_parsing import NotYaml
from mlcore.catalog.entry import ASSET_TYPES, CatalogEntry, stored

AVAILABLE: Final = "available"
PARTIAL: Final = "partially-available"
ERROR: Final = "error"
DISABLED: Final = "disabled"

PATH: Final = "yamlCatalogPath"
MAX_ERROR_LENGTH: Final = 1000
"""The most characters of a source's error message that are stored."""

MAX_ENTRY_BYTES: Final = 3_000_000
"""Largest JSON of a model or server in a file, with its artifacts or tools: a Lambda response holds
6 MB."""

HUB_SECONDS: Final = 60.0
"""After this time, a load sends no further request to the Hub for one source."""
_RETRY_MS: Final = 3_600_000
"""If the Hub does not answer, it is asked again after this time, or after the source's interval if
that is shorter."""

ParseFile = Callable[[str], Any]
"""Takes the name of a YAML file and returns its parsed content."""


class SourceContent(NamedTuple):
    """The result of reading one source of the model catalog: its entries, or the error."""

    source: ConfiguredSource
    status: str
    error: str
    entries: Sequence[CatalogEntry] = ()
    keeps: bool = False
    """The source keeps its entries of the generation before."""
    definition: str = ""
    """For a source on the Hub: a digest of its definition in the catalog's files."""
    due: int | None = None
    """For a source on the Hub: when to read it again, in ms since the epoch."""
    file: str = ""
    """For a source in a file: the file's name and a mark that changes with its content."""
    loaded: int | None = None
    """When this content of the file was first read, in ms since the epoch."""


def read(
    source: ConfiguredSource,
    parse_file: ParseFile,
    names: dict[str, str],
    before: Mapping[str, Any],
    now: int,
) -> SourceContent:
    """Reads the entries of a source of the model or MCP catalog, from its YAML file or from the
    Hugging Face Hub. An error in them is not raised but returned in the result.

    Args:
        parse_file: parses a YAML file of the catalog.
        names: the catalog's files, each with a text that differs after a change of its content.
        before: what the previous load stored about the source.
        now: the current time in ms since the epoch.
    """
    if not source.enabled:
        return SourceContent(source, DISABLED, "")
    if source.type in configuration.HUGGING_FACE:
        return _read_hub(source, now)
    content = SourceContent(
        source, AVAILABLE, "", file=before.get("file", ""), loaded=before.get("loaded", now)
    )
    try:
        entries, mark = _read_file(source, parse_file, names)
    except (InvalidField, NotYaml, OutsideCatalog) as error:
        return content._replace(status=ERROR, error=str(error)[:MAX_ERROR_LENGTH], keeps=True)
    loaded = content.loaded if content.file == mark and content.loaded else now
    return content._replace(entries=_with_times(entries, loaded), file=mark, loaded=loaded)


def _with_times(entries: Iterable[CatalogEntry], loaded: int) -> list[CatalogEntry]:
    """Returns the entries with creation and update times; a missing time becomes ``loaded``, in ms
    since the epoch."""
    return [
        entry._replace(
            create_time=loaded if entry.create_time is None else entry.create_time,
            update_time=loaded if entry.update_time is None else entry.update_time,
            children=tuple(_with_times(entry.children, loaded)),
        )
        for entry in entries
    ]


def skip_until_due(
    source: ConfiguredSource, before: Mapping[str, Any], now: int
) -> SourceContent | None:
    """Returns a result that keeps the model catalog's entries of a Hugging Face source that is not
    yet due and whose definition has not changed; None for a source that must be read.

    Args:
        before: what the previous load stored about the source.
    """
    due = before.get("due")
    if due is None or due <= now or before["definition"] != definition_of(source):
        return None
    return SourceContent(
        source, before["status"], before["error"], (), True, before["definition"], due
    )


def definition_of(source: ConfiguredSource) -> str:
    """Returns a digest of those fields of a model catalog's source on which its entries depend."""
    text = json.dumps(source._replace(name="", labels=()), sort_keys=True)
    return blake2b(text.encode(), digest_size=8).hexdigest()


def _read_file(
    source: ConfiguredSource, parse_file: ParseFile, names: dict[str, str]
) -> tuple[list[CatalogEntry], str]:
    """Reads a source's YAML file. Returns its entries, and the file's name together with a mark
    that changes with the content. Raises InvalidField, NotYaml or OutsideCatalog."""
    if source.type != configuration.YAML:
        raise InvalidField(f"unknown source type {source.type!r}")
    path = source.properties.get(PATH)
    if not isinstance(path, str) or not path:
        raise InvalidField(f"missing {PATH} string property")
    name = resolve(path, source.folder, names)
    data = parse_file(name)
    make = entry_parsing.models if source.asset_type == "models" else entry_parsing.servers
    entries = [entry for entry in make(source.key, data) if source.includes(entry.name)]
    for entry in entries:
        if len(stored(entry).whole) > MAX_ENTRY_BYTES:
            raise InvalidField(f"{entry.name!r} is too large: {MAX_ENTRY_BYTES} bytes are the most")
    return entries, f"{name} {names[name]}"


def _read_hub(source: ConfiguredSource, now: int) -> SourceContent:
    definition = definition_of(source)
    if source.asset_type != "models":
        return SourceContent(source, ERROR, f"type: {source.type} has no MCP servers", keeps=True)
    due = None
    try:
        interval = hugging_face.settings_of(source).interval_ms
        due = now + interval
        bound = hugging_face.within_organization(source)
        hub_models = hugging_face.fetch(bound, seconds=HUB_SECONDS)
        entries = _with_times(entry_parsing.models(source.key, {"models": hub_models.models}), now)
    except NotReached as error:
        due = now + min(interval, _RETRY_MS)
        return SourceContent(
            source, ERROR, str(error)[:MAX_ERROR_LENGTH], (), True, definition, due
        )
    except InvalidField as error:
        return SourceContent(
            source, ERROR, str(error)[:MAX_ERROR_LENGTH], (), True, definition, due
        )
    shown = [entry for entry in entries if bound.includes(entry.name)]
    if not hub_models.missing:
        return SourceContent(source, AVAILABLE, "", shown, False, definition, due)
    missing = f"the Hub does not show: {', '.join(hub_models.missing)}"[:MAX_ERROR_LENGTH]
    status = PARTIAL if shown else ERROR
    return SourceContent(source, status, missing, shown, False, definition, due)


def with_previous_entries(
    before: Iterable[CatalogEntry], reads: Sequence[SourceContent]
) -> list[SourceContent]:
    """Returns the results of reading the catalog's sources, where each source that could not be
    read or is not due (``keeps``) gets its entries of the catalog's previous load.

    Args:
        before: the entries of the previous load; consumed only if a source keeps its entries.
    """
    previous: dict[tuple[str, str], list[CatalogEntry]] = {
        _key(read): [] for read in reads if read.keeps
    }
    for entry in before if previous else ():
        key = (entry.source, entry.kind)
        if key in previous:
            previous[key].append(entry)
    return [read._replace(entries=previous[_key(read)]) if read.keeps else read for read in reads]


def _key(read: SourceContent) -> tuple[str, str]:
    return read.source.key, ASSET_TYPES[read.source.asset_type]
