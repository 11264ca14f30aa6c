"""The dictionary of full text: FTS items that map trigrams to the words and values of an experiment
that contain them.

A text has one dictionary entry for each field and type of entity, however many entities have the
text. The first texts of an experiment are entries of one item
(:mod:`indexer.full_text.dictionary_page`). Any other text has an FTS item for each of its trigrams
(of contents of spans, only for the indexed ones); the item of the last trigram is put after all
others.

Adding: the indexer puts the FTS item that maps the text to the entity, *then* checks whether the
dictionary has the text (in the page, or as the last trigram's item), and puts missing items. Last,
it removes the entity's mark (the key that says that the entity is not indexed yet). So the
dictionary has every text with trigrams of an entity without a mark.

Removing: the process that removed an entity's text (1) checks that no entity has the text, (2)
marks the last trigram's item, or the page's entry, as ``leaving``, (3) checks again, (4) removes
the items that did not change since it read them, the last trigram's item at the end. If another
process adds the text meanwhile, either the second check sees it, or that process sees ``leaving``
and puts all items again with a new ``version``. An unused entry costs searches a needless read and
nothing else; ``reindex`` removes it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from functools import partial
from random import getrandbits

from indexer.full_text import dictionary_page, text_items
from indexer.full_text.dictionary_page import HELD, DictionaryEntry, Page
from indexer.projection.child_items import Posting, SourceEntity
from mlcore.db import keys
from mlcore.db.attribute_types import text_of
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.keys import Key
from mlcore.db.table import key_of_item, table
from mlcore.models.base import Item
from mlcore.models.search_index import EntityEntry, Fts
from mlcore.search import text_fields, text_tokens
from mlcore.search.text_tokens import TRIGRAM, VALUE, WORD, IndexToken

_KINDS = {text_fields.text_entity_type(kind): kind for kind in (text_items.RUN, text_items.TRACE)}

_ENTITY_TYPE = Fts.entity_type.attr_name

_VERSION_BITS = 53
"""Bits of the random version that each put of an entry gets."""


def entry_of(entity: SourceEntity, posting: Posting) -> DictionaryEntry | None:
    """Returns the entry of the full-text dictionary (the list of an experiment's words and values)
    that a posting (a word or value in an entity's field) needs; None if it needs none: numbers,
    texts without indexed trigrams (such as words of two characters), too long texts, and texts that
    are searched as a whole."""
    entry = DictionaryEntry(entity.experiment_id, entity.kind, posting)
    return entry if _is_listed(entry) and _trigrams(entry) else None


def item_keys(entry: DictionaryEntry) -> list[Key]:
    """Returns the keys of the items of an entry of the full-text dictionary, one for each indexed
    trigram, in the order in which the items are put."""
    return [_item_key(entry, trigram) for trigram in _trigrams(entry)]


def items(entry: DictionaryEntry) -> list[Raw]:
    """Returns the DynamoDB items of an entry (a text) of the full-text dictionary, in the order of
    :func:`item_keys`."""
    field, (_, token) = entry.posting
    version = getrandbits(_VERSION_BITS)
    fts_items = []
    for trigram in _trigrams(entry):
        key = _item_key(entry, trigram)
        model = Fts(
            PK=key.pk,
            SK=key.sk,
            level=TRIGRAM,
            token=trigram,
            field=None if field == text_fields.NAME else field,
            entity_type=text_fields.text_entity_type(entry.kind),
            entity_id=token,
            version=version,
        )
        fts_items.append(model.serialize())
    return fts_items


def entry_of_item(experiment_id: str, item: Raw) -> DictionaryEntry | None:
    """Returns the entry of the full-text dictionary to which an index item belongs; None if it is
    not an item of the dictionary."""
    kind = _KINDS.get(text_of(item, _ENTITY_TYPE) or "")
    if kind is None:
        return None
    fts = Fts.of(item)
    field = text_fields.NAME if fts.field is None else fts.field
    return DictionaryEntry(experiment_id, kind, _posting(field, fts.entity_id))


def entry_named(experiment_id: str, name: str) -> DictionaryEntry:
    """Returns the entry that has this name on the first page of an experiment's full-text
    dictionary (:attr:`DictionaryEntry.name`)."""
    kind, field, text = json.loads(name)
    return DictionaryEntry(experiment_id, kind, _posting(field, text))


def _posting(field: str, text: str) -> Posting:
    level = WORD if text_fields.has_words(field) else VALUE
    return Posting(field, IndexToken(level, text))


def matches_key(experiment_id: str, item: Raw) -> bool:
    """Whether the attributes of an item of an experiment's full-text dictionary (trigram → text)
    agree with its key. False, or KeyError, if an attribute is missing."""
    entry = entry_of_item(experiment_id, item)
    fts = Fts.of(item)
    if entry is None or fts.level != TRIGRAM:
        return False
    return _item_key(entry, fts.token) == key_of_item(item)


def items_needed_by(fts_items: Iterable[Raw], first_page: Page) -> list[Raw]:
    """Returns the items that an experiment's full-text dictionary must have for the given FTS items
    (its full-text index). Texts on the dictionary's first page need no items."""
    return items_beside(first_page, entries_needed_by(fts_items))


def entries_needed_by(fts_items: Iterable[Raw]) -> list[DictionaryEntry]:
    """Returns the entries that the full-text dictionary must have for the given FTS items, each
    once."""
    return list(dict.fromkeys(_entries_of(fts_items)))


def items_beside(first_page: Page, entries: Iterable[DictionaryEntry]) -> list[Raw]:
    """Returns the items of those entries that are not on the first page of the full-text
    dictionary."""
    return [item for entry in entries if entry.name not in first_page for item in items(entry)]


def missing_entries(fts_items: Iterable[Raw]) -> list[tuple[Page | None, list[DictionaryEntry]]]:
    """Returns, for each experiment whose full-text dictionary lacks entries for the given FTS
    items, the dictionary's first page (None if there is none) and these entries. One BatchGetItem
    per hundred items."""
    entries = entries_needed_by(fts_items)
    pages = {entry.experiment_id: keys.fts_texts(entry.experiment_id) for entry in entries}
    lasts = [item_keys(entry)[-1] for entry in entries]
    read = iter(table.batch_get([*pages.values(), *lasts]))
    listed = {page: _page(next(read)) for page in pages}
    lacking: dict[str, list[DictionaryEntry]] = {}
    for entry, item in zip(entries, read, strict=True):
        is_there = item is not None and Fts.of(item).leaving is None
        if not is_there and (listed[entry.experiment_id] or {}).get(entry.name) != HELD:
            lacking.setdefault(entry.experiment_id, []).append(entry)
    return [(listed[experiment_id], new) for experiment_id, new in lacking.items()]


def restore_texts(lost_items: Iterable[Raw]) -> None:
    """Adds the texts of missing or damaged items of the full-text dictionary to it again: on its
    first page if that has room, else as items."""
    entries: dict[str, dict[DictionaryEntry, None]] = {}
    for item in lost_items:
        entry = entry_of_item(keys.experiment_id_of(key_of_item(item).pk), item)
        if entry is not None:
            entries.setdefault(entry.experiment_id, {})[entry] = None
    for experiment_id, lost_entries in entries.items():
        page = _page(table.get(keys.fts_texts(experiment_id)))
        put_all(dictionary_page.add_entries(page, list(lost_entries)))


def _page(item: Raw | None) -> Page | None:
    return None if item is None else dictionary_page.texts_of(item)


def put_all(entries: Iterable[DictionaryEntry]) -> None:
    """Puts the items of entries of the full-text dictionary (one item per indexed trigram of a
    text). The last item of each entry is put after all others: readers take it as a sign that all
    exist."""
    items_of_entries = [items(entry) for entry in entries]
    table.batch_write(item for entry_items in items_of_entries for item in entry_items[:-1])
    table.batch_write(entry_items[-1] for entry_items in items_of_entries)


def remove_unused(removed_postings: Iterable[tuple[SourceEntity, Posting]]) -> None:
    """Removes from the full-text dictionary the texts (words and values) of removed postings that
    no run or trace has any more. If the process is killed, unused texts stay, which is harmless."""
    entries = {entry_of(entity, posting): None for entity, posting in removed_postings}
    table.parallel([partial(remove_if_unused, entry) for entry in entries if entry is not None])


def is_held(entry: DictionaryEntry) -> bool:
    """Whether any entity still has a full-text dictionary entry's text in this entry's field: one
    Query."""
    field, (level, token) = entry.posting
    prefix = keys.fts_of_type_prefix(text_fields.key_level(level, field), token, entry.kind)
    pk = keys.experiment(entry.experiment_id).pk
    return bool(table.query(pk, prefix=prefix, limit=1, attributes=[Fts.SK]).items)


def remove_if_unused(entry: DictionaryEntry) -> None:
    """Removes a full-text dictionary entry unless an entity has its text, or gets it during the
    removal. The steps are in the module's docstring."""
    if is_held(entry):
        return
    was_listed = dictionary_page.begin_leaving(entry)
    entry_items = [item for item in table.batch_get(item_keys(entry)) if item is not None]
    if entry_items and not _begin_leaving(entry, entry_items[-1]):
        entry_items = []
    if not was_listed and not entry_items:
        return
    if is_held(entry):
        if was_listed:
            dictionary_page.cancel_leaving([entry])
        else:
            put_all([entry])
        return
    if was_listed:
        dictionary_page.end_leaving(entry)
    table.parallel([partial(remove_as_read, item) for item in entry_items[:-1]])
    table.parallel([partial(remove_as_read, item) for item in entry_items[-1:]])


def _begin_leaving(entry: DictionaryEntry, item: Raw) -> bool:
    """Sets the state of a dictionary entry's last item to ``leaving``; returns False if the item
    changed meanwhile. The entry's other items need no state."""
    if key_of_item(item) != item_keys(entry)[-1]:
        return True
    marked = Update()
    marked.set(Fts.leaving, True)
    marked.require_exists(Fts.PK)
    _require_as_read(marked, item)
    try:
        table.update(key_of_item(item), marked)
    except ConditionFailed:
        return False
    return True


def remove_as_read(item: Raw) -> None:
    """Removes an item of the full-text index unless its version has changed since it was read."""
    as_read = ConditionExpression()
    _require_as_read(as_read, item)
    with contextlib.suppress(ConditionFailed):
        table.delete(key_of_item(item), as_read)


def _require_as_read(update: Update, item: Raw) -> None:
    version = EntityEntry.of(item).version
    if version is None:
        update.require_absent(EntityEntry.version)
    else:
        update.require_equal(EntityEntry.version, version)


def _entries_of(fts_items: Iterable[Raw]) -> Iterator[DictionaryEntry]:
    for item in fts_items:
        if Item.of(item).type != Fts.pattern.name or Fts.of(item).entity_type in _KINDS:
            continue
        experiment_id = keys.experiment_id_of(key_of_item(item).pk)
        entity = text_items.entity_of(experiment_id, item)
        entry = entry_of(entity, text_items.posting_of(item))
        if entry is not None:
            yield entry


def _is_listed(entry: DictionaryEntry) -> bool:
    field, (level, _) = entry.posting
    if entry.kind not in _KINDS.values():
        return False
    return level == (WORD if text_fields.has_words(field) else VALUE)


def _trigrams(entry: DictionaryEntry) -> list[str]:
    trigrams = sorted(text_tokens.trigrams_of_token(entry.posting.token))
    if entry.posting.field == text_fields.CONTENT:
        return [trigram for trigram in trigrams if text_tokens.is_indexed_in_contents(trigram)]
    return trigrams


def _item_key(entry: DictionaryEntry, trigram: str) -> Key:
    field, (_, token) = entry.posting
    level = text_fields.key_level(TRIGRAM, field)
    return keys.fts(
        entry.experiment_id, level, trigram, text_fields.text_entity_type(entry.kind), token
    )
