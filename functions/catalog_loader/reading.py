"""What sources hold now: of YAML in the catalog's files, of Hugging Face on its Hub. A source that
cannot be read keeps what it had, and says why."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from catalog_loader import configuration, contents, hugging_face
from catalog_loader.configuration import Source
from catalog_loader.fields import Wrong
from catalog_loader.files import OutsideCatalog, find
from catalog_loader.hugging_face import NotReached
from catalog_loader.yaml_text import NotYaml
from mlcore.catalog.entry import ASSET_TYPES, Entry, stored

AVAILABLE: Final = "available"
PARTIAL: Final = "partially-available"
ERROR: Final = "error"
DISABLED: Final = "disabled"

PATH: Final = "yamlCatalogPath"
MOST_ERROR: Final = 1000
"""Characters of what is said of a source that cannot be read."""

MOST_BYTES: Final = 3_000_000
"""Of JSON of a model or server: an answer of Lambda holds 6 MB."""

HUB_SECONDS: Final = 60.0
"""For which a load asks the Hub for the models of one source."""
_AGAIN_MS: Final = 3_600_000
"""After which the Hub is asked again that did not answer, or before that as its source says."""

Text = Callable[[str], Any]
"""What the YAML file of a name holds."""


class Read(NamedTuple):
    """A source with what was found there."""

    source: Source
    status: str
    error: str
    entries: Sequence[Entry] = ()
    keeps: bool = False
    """What it had stays."""
    definition: str = ""
    """Of a source on the Hub: a mark of what the files say of it."""
    due: int | None = None
    """When such a source is to be read again, in ms since the epoch."""
    file: str = ""
    """Of a source in a file: a mark that changes with the file."""
    loaded: int | None = None
    """When the file was first read as it is, in ms since the epoch."""


def read(
    source: Source, text: Text, names: dict[str, str], before: Mapping[str, Any], now: int
) -> Read:
    """
    Args:
        before: what the generation before says of the source.
    """
    if not source.enabled:
        return Read(source, DISABLED, "")
    if source.type in configuration.HUGGING_FACE:
        return _of_hub(source, now)
    kept = Read(
        source, AVAILABLE, "", file=before.get("file", ""), loaded=before.get("loaded", now)
    )
    try:
        found, mark = _of_file(source, text, names)
    except (Wrong, NotYaml, OutsideCatalog) as error:
        return kept._replace(status=ERROR, error=str(error)[:MOST_ERROR], keeps=True)
    loaded = kept.loaded if kept.file == mark and kept.loaded else now
    return kept._replace(entries=_dated(found, loaded), file=mark, loaded=loaded)


def _dated(entries: Iterable[Entry], loaded: int) -> list[Entry]:
    """Entries, each with its times: what a source does not say is the time of its load."""
    return [
        entry._replace(
            create_time=loaded if entry.create_time is None else entry.create_time,
            update_time=loaded if entry.update_time is None else entry.update_time,
            children=tuple(_dated(entry.children, loaded)),
        )
        for entry in entries
    ]


def unread(source: Source, before: Mapping[str, Any], now: int) -> Read | None:
    """A source on the Hub that need not be read yet, and keeps what it had.

    Args:
        before: what the generation before says of it.
    """
    due = before.get("due")
    if due is None or due <= now or before["definition"] != definition_of(source):
        return None
    return Read(source, before["status"], before["error"], (), True, before["definition"], due)


def definition_of(source: Source) -> str:
    text = json.dumps(source._replace(name="", labels=()), sort_keys=True)
    return blake2b(text.encode(), digest_size=8).hexdigest()


def _of_file(source: Source, text: Text, names: dict[str, str]) -> tuple[list[Entry], str]:
    """The entries of a source, and the mark of its file. Raises Wrong, NotYaml, OutsideCatalog."""
    if source.type != configuration.YAML:
        raise Wrong(f"unknown source type {source.type!r}")
    path = source.properties.get(PATH)
    if not isinstance(path, str) or not path:
        raise Wrong(f"missing {PATH} string property")
    name = find(path, source.folder, names)
    data = text(name)
    make = contents.models if source.asset_type == "models" else contents.servers
    found = [entry for entry in make(source.key, data) if source.includes(entry.name)]
    for entry in found:
        if len(stored(entry).whole) > MOST_BYTES:
            raise Wrong(f"{entry.name!r} is too large: {MOST_BYTES} bytes are the most")
    return found, f"{name} {names[name]}"


def _of_hub(source: Source, now: int) -> Read:
    definition = definition_of(source)
    if source.asset_type != "models":
        return Read(source, ERROR, f"type: {source.type} has no MCP servers", keeps=True)
    due = None
    try:
        interval = hugging_face.settings_of(source).interval_ms
        due = now + interval
        bound = hugging_face.within_organization(source)
        found = hugging_face.fetch(bound, seconds=HUB_SECONDS)
        entries = _dated(contents.models(source.key, {"models": found.models}), now)
    except NotReached as error:
        due = now + min(interval, _AGAIN_MS)
        return Read(source, ERROR, str(error)[:MOST_ERROR], (), True, definition, due)
    except Wrong as error:
        return Read(source, ERROR, str(error)[:MOST_ERROR], (), True, definition, due)
    shown = [entry for entry in entries if bound.includes(entry.name)]
    if not found.missing:
        return Read(source, AVAILABLE, "", shown, False, definition, due)
    missing = f"the Hub does not show: {', '.join(found.missing)}"[:MOST_ERROR]
    status = PARTIAL if shown else ERROR
    return Read(source, status, missing, shown, False, definition, due)


def with_kept(before: Iterable[Entry], reads: Sequence[Read]) -> list[Read]:
    """The sources that keep what they had, with that.

    Args:
        before: the entries of the generation before; read where one keeps any.
    """
    kept: dict[tuple[str, str], list[Entry]] = {_place(read): [] for read in reads if read.keeps}
    for entry in before if kept else ():
        place = (entry.source, entry.kind)
        if place in kept:
            kept[place].append(entry)
    return [read._replace(entries=kept[_place(read)]) if read.keeps else read for read in reads]


def _place(read: Read) -> tuple[str, str]:
    return read.source.key, ASSET_TYPES[read.source.asset_type]
