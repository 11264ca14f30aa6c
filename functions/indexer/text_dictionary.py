"""The words and values of an experiment's texts, by their stretches of three characters: FTS items
that lead to FTS items. However many entities hold a word or a value, its own items are written
once.

The first texts of an experiment are in one item, :mod:`indexer.text_page`, and need no others. Of
the items of another text one is the last to be put, and says that the others are there. Whoever has
put the first item that leads from a text to an entity looks for it in the page and for that one
*afterwards*, and puts what is not there. So a text that an entity holds, whose mark has gone, is in
the dictionary.

A text that nobody holds any more does no harm. Whoever leaves it last takes it away: marks the last
item as leaving, looks whether somebody holds the text, and removes what is as it was read, the last
one at the end. Whoever comes meanwhile is seen by that look, or sees the mark and puts everything
anew under another ``version``. A rebuild does so with all that nobody asks for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from functools import partial
from random import getrandbits

from indexer import text_items, text_page
from indexer.child_items import Entity, Posting
from indexer.text_page import HELD, Entry, Page
from mlcore.db import keys
from mlcore.db.attributes import text_of
from mlcore.db.expression import Condition, Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.keys import Key
from mlcore.db.table import key_in, table
from mlcore.models.base import Item
from mlcore.models.index import EntityEntry, Fts
from mlcore.search import text, text_fields
from mlcore.search.text import TRIGRAM, VALUE, WORD, Token

_KINDS = {text_fields.texts_of(kind): kind for kind in (text_items.RUN, text_items.TRACE)}

_ENTITY_TYPE = Fts.entity_type.attr_name

_VERSION_BITS = 53
"""A put that takes the place of another has another version, whoever made it."""


def entry_of(entity: Entity, posting: Posting) -> Entry | None:
    """None for what is not in the dictionary: what is looked for whole, and what is too short or a
    number."""
    entry = Entry(entity.experiment_id, entity.kind, posting)
    return entry if _is_listed(entry) and _stretches(entry) else None


def places(entry: Entry) -> list[Key]:
    """Where its items are, the one that is put last at the end."""
    return [_place(entry, stretch) for stretch in _stretches(entry)]


def items(entry: Entry) -> list[Raw]:
    """Its items, in that order."""
    field, (_, found) = entry.posting
    version = getrandbits(_VERSION_BITS)
    made = []
    for stretch in _stretches(entry):
        where = _place(entry, stretch)
        model = Fts(
            PK=where.pk,
            SK=where.sk,
            level=TRIGRAM,
            token=stretch,
            field=None if field == text_fields.NAME else field,
            entity_type=text_fields.texts_of(entry.kind),
            entity_id=found,
            version=version,
        )
        made.append(model.serialize())
    return made


def told_by(experiment_id: str, item: Raw) -> Entry | None:
    """What an item of the dictionary is of; None for any other item."""
    kind = _KINDS.get(text_of(item, _ENTITY_TYPE) or "")
    if kind is None:
        return None
    told = Fts.of(item)
    field = text_fields.NAME if told.field is None else told.field
    level = WORD if text_fields.has_words(field) else VALUE
    return Entry(experiment_id, kind, Posting(field, Token(level, told.entity_id)))


def is_whole(experiment_id: str, item: Raw) -> bool:
    """Whether an item of the dictionary says what its key says. Raises KeyError."""
    entry = told_by(experiment_id, item)
    told = Fts.of(item)
    if entry is None or told.level != TRIGRAM:
        return False
    return _place(entry, told.token) == key_in(item)


def asked_by(put: Iterable[Raw], listed: Page) -> list[Raw]:
    """The items that FTS items need, where the first page does not list what they name."""
    entries = dict.fromkeys(_named(put))
    return [item for one in entries if one.name not in listed for item in items(one)]


def complete(put: Iterable[Raw]) -> None:
    """After FTS items were put: what they name is in the dictionary then. One BatchGetItem, and
    writes for what was not there."""
    for page, entries in missing(put):
        put_all(text_page.enter(page, entries))


def missing(put: Iterable[Raw]) -> list[tuple[Page | None, list[Entry]]]:
    """What FTS items name and the dictionary does not have, with the first page of each experiment.
    One BatchGetItem."""
    entries = list(dict.fromkeys(_named(put)))
    pages = {one.experiment_id: keys.fts_texts(one.experiment_id) for one in entries}
    lasts = [places(entry)[-1] for entry in entries]
    read = iter(table.batch_get([*pages.values(), *lasts]))
    listed = {one: _page(next(read)) for one in pages}
    lacking: dict[str, list[Entry]] = {}
    for entry, item in zip(entries, read, strict=True):
        is_there = item is not None and Fts.of(item).leaving is None
        if not is_there and (listed[entry.experiment_id] or {}).get(entry.name) != HELD:
            lacking.setdefault(entry.experiment_id, []).append(entry)
    return [(listed[experiment_id], new) for experiment_id, new in lacking.items()]


def restore(lost: Iterable[Raw]) -> None:
    """Puts texts anew of which items are missing or wrong: into the first page, if it has room."""
    entries: dict[str, dict[Entry, None]] = {}
    for item in lost:
        entry = told_by(keys.experiment_id_of(key_in(item).pk), item)
        if entry is not None:
            entries.setdefault(entry.experiment_id, {})[entry] = None
    for experiment_id, wanted in entries.items():
        page = _page(table.get(keys.fts_texts(experiment_id)))
        put_all(text_page.enter(page, list(wanted)))


def _page(item: Raw | None) -> Page | None:
    return None if item is None else text_page.texts_of(item)


def put_all(entries: Iterable[Entry]) -> None:
    """Puts the items of texts, the last one of each when the others are there."""
    made = [items(entry) for entry in entries]
    table.batch_write(item for one in made for item in one[:-1])
    table.batch_write(one[-1] for one in made)


def release(left: Iterable[tuple[Entity, Posting]]) -> None:
    """After FTS items were removed: the dictionary needs no text that nobody holds now. One that
    stays because this was killed does no harm."""
    entries = {entry_of(entity, posting): None for entity, posting in left}
    table.parallel([partial(take_away, entry) for entry in entries if entry is not None])


def is_held(entry: Entry) -> bool:
    field, (level, found) = entry.posting
    prefix = keys.fts_of_type_prefix(text_fields.level_of(level, field), found, entry.kind)
    pk = keys.experiment(entry.experiment_id).pk
    return bool(table.query(pk, prefix=prefix, limit=1, attributes=[Fts.SK]).items)


def take_away(entry: Entry) -> None:
    """Removes a text from the dictionary, unless somebody holds it, or comes to hold it now."""
    if is_held(entry):
        return
    was_listed = text_page.begin_leaving(entry)
    found = [item for item in table.batch_get(places(entry)) if item is not None]
    if found and not _begin_leaving(entry, found[-1]):
        found = []
    if not was_listed and not found:
        return
    if is_held(entry):
        if was_listed:
            text_page.stay([entry])
        else:
            put_all([entry])
        return
    if was_listed:
        text_page.end_leaving(entry)
    table.parallel([partial(remove_as_read, item) for item in found[:-1]])
    table.parallel([partial(remove_as_read, item) for item in found[-1:]])


def _begin_leaving(entry: Entry, item: Raw) -> bool:
    """Marks the item that was put last, if it is that one; False if it moved meanwhile."""
    if key_in(item) != places(entry)[-1]:
        return True
    marked = Update()
    marked.set(Fts.leaving, True)
    marked.require_exists(Fts.PK)
    _require_as_read(marked, item)
    try:
        table.update(key_in(item), marked)
    except ConditionFailed:
        return False
    return True


def remove_as_read(item: Raw) -> None:
    """Takes an index item away, unless it is another version by now."""
    as_read = Condition()
    _require_as_read(as_read, item)
    with contextlib.suppress(ConditionFailed):
        table.delete(key_in(item), as_read)


def _require_as_read(update: Update, item: Raw) -> None:
    version = EntityEntry.of(item).version
    if version is None:
        update.require_absent(EntityEntry.version)
    else:
        update.require_equal(EntityEntry.version, version)


def _named(put: Iterable[Raw]) -> Iterator[Entry]:
    for item in put:
        if Item.of(item).type != Fts.pattern.name or Fts.of(item).entity_type in _KINDS:
            continue
        experiment_id = keys.experiment_id_of(key_in(item).pk)
        (posting,) = text_items.postings_of(item)
        entry = entry_of(text_items.entity_of(experiment_id, item), posting)
        if entry is not None:
            yield entry


def _is_listed(entry: Entry) -> bool:
    field, (level, _) = entry.posting
    if entry.kind not in _KINDS.values():
        return False
    return level == (WORD if text_fields.has_words(field) else VALUE)


def _stretches(entry: Entry) -> list[str]:
    found = sorted(text.stretches(entry.posting.token))
    if entry.posting.field == text_fields.CONTENT:
        return [stretch for stretch in found if text.in_contents(stretch)]
    return found


def _place(entry: Entry, stretch: str) -> Key:
    field, (_, found) = entry.posting
    level = text_fields.level_of(TRIGRAM, field)
    return keys.fts(entry.experiment_id, level, stretch, text_fields.texts_of(entry.kind), found)
