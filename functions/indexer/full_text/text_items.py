"""FTS and FTS_REV items: the postings (field and token) of an entity in the full-text index of its
experiment.

Pure functions. An FTS item's key has the token and the entity, so a token that a changed text keeps
costs no write. FTS_REV items list all postings of an entity, up to 60,000 characters in each. The
dictionary, which maps trigrams to tokens, is in :mod:`indexer.full_text.text_dictionary`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from indexer.projection.child_items import Posting, SourceEntity, Writes, content
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import IndexKey, Key
from mlcore.models.base import Item
from mlcore.models.experiments import Experiment
from mlcore.models.search_index import Fts, FtsRev
from mlcore.search import text_fields, text_tokens
from mlcore.search.text_fields import NAME, IndexedFields, key_level
from mlcore.search.text_tokens import IndexToken

RUN = "run"
EXPERIMENT = "experiment"
TRACE = "trace"

OWN: Final = "texts"
"""The level (a part of the key) of the FTS_REV items of the texts in an entity's own item."""
REVERSE_CHARACTERS: Final = 60_000
"""Approximate maximum number of characters in an FTS_REV item; more tokens go to another item."""


Texts = Mapping[str, str]
"""Texts of an entity, by the name of their field."""


def texts_of_run(image: Raw | None) -> dict[str, str]:
    """Returns all texts of a run item that a full-text index may cover."""
    if image is None:
        return {}
    tags = content(image, "tags")
    texts = {text_fields.tag_field(key): value for key, value in tags.items()}
    for key, value in content(image, "params").items():
        texts[text_fields.param_field(key)] = value
    for name in text_fields.ATTRIBUTES:
        if name in image:
            texts[text_fields.attribute_field(name)] = image[name]["S"]
    return texts


def name_of_experiment(image: Raw | None) -> dict[str, str]:
    """Returns the texts of an experiment item that the full-text index contains, by field: its
    name."""
    return {} if image is None else {NAME: Experiment.of(image).name}


def postings(texts: Texts, indexed: IndexedFields | None) -> set[Posting]:
    """Returns the postings (field and word or value) of those texts of an entity that the full-text
    index covers; none if ``indexed`` is None."""
    if indexed is None:
        return set()
    return {
        posting
        for field, value in texts.items()
        if indexed.covers(field)
        for posting in postings_of_text(field, value)
    }


def postings_of_text(field: str, value: str) -> set[Posting]:
    """Returns the postings of one field's text: one for each word, or one for the whole text,
    depending on the field. An absent text (``""``) has none."""
    if text_fields.has_words(field):
        return {Posting(field, token) for token in text_tokens.word_tokens(value)}
    return {Posting(field, text_tokens.value_token(value))} if value else set()


def name_postings(texts: Texts) -> set[Posting]:
    """Returns the postings of an experiment's name: one for each of its words and trigrams.
    Trigrams have postings because experiment names are in no full-text dictionary."""
    return {
        Posting(field, token)
        for field, value in texts.items()
        for token in text_tokens.index_tokens(value)
    }


def changed(before: Texts, after: Texts) -> list[tuple[str, str, str]]:
    """Returns (field, old text, new text) for each field of an entity whose text a write changed;
    "" stands for an absent text.

    Args:
        before, after: the entity's texts by field.
    """
    return [
        (field, before.get(field, ""), after.get(field, ""))
        for field in before.keys() | after.keys()
        if before.get(field) != after.get(field)
    ]


def changed_postings(
    changes: Iterable[tuple[str, str, str]], indexed: IndexedFields | None
) -> set[Posting]:
    """Returns the postings of the full-text index that changes of an entity's texts add or remove.

    Args:
        changes: (field, old text, new text) of each changed text.
    """
    return {
        posting
        for field, before, after in changes
        if indexed is not None and indexed.covers(field)
        for posting in postings_of_text(field, before) ^ postings_of_text(field, after)
    }


def writes(
    entity: SourceEntity,
    touched: set[Posting],
    current: set[Posting],
    version: int | None,
    of: str = OWN,
) -> Writes:
    """Returns the writes that update an entity's full-text items: puts those of the ``touched``
    postings that are current, removes the other touched ones, and puts the FTS_REV items of all
    current postings.

    Args:
        touched: postings that may have been added or removed.
        current: all postings that the entity now has in the part ``of``.
        of: the level of the FTS_REV items, which names the part of the entity (its own item, or one
            pack of spans).
    """
    if not touched:
        return Writes([], [], [], [])
    puts = [item(entity, posting, version) for posting in sorted(touched & current)]
    removed = sorted(touched - current)
    removals = [key_of(entity, posting) for posting in removed]
    reverse = reverse_items(entity, current, version, of)
    count_before = len(reverse_items(entity, touched | current, version, of))
    removals += [reverse_key(entity, of, number) for number in range(len(reverse), count_before)]
    return Writes([*puts, *reverse], [], [], removals, [(entity, posting) for posting in removed])


def key_of(entity: SourceEntity, posting: Posting) -> Key:
    level = key_level(posting.token.level, posting.field)
    return keys.fts(entity.experiment_id, level, posting.token.text, entity.kind, entity.entity_id)


def reverse_key(entity: SourceEntity, of: str, number: int) -> Key:
    return keys.fts_rev(entity.experiment_id, entity.kind, entity.entity_id, of, str(number))


def item(entity: SourceEntity, posting: Posting, version: int | None) -> Raw:
    """Makes an FTS item: a full-text index's entry for one word, whole value or trigram of an
    entity. Those of names are also in GSI2, which no search reads.

    Args:
        version: the version of the entity's item.
    """
    key = key_of(entity, posting)
    field, (level, token) = posting
    globally = IndexKey("", "")
    if field == NAME:
        globally = keys.gsi2_fts(token, level, entity.kind, entity.entity_id)
    model = Fts(
        PK=key.pk,
        SK=key.sk,
        level=level,
        token=token,
        field=None if field == NAME else field,
        entity_type=entity.kind,
        entity_id=entity.entity_id,
        version=version,
        gsi2pk=globally.pk or None,
        gsi2sk=globally.sk or None,
    )
    return model.serialize()


def reverse_items(
    entity: SourceEntity, current: Iterable[Posting], version: int | None, of: str = OWN
) -> list[Raw]:
    """Makes the FTS_REV items that list the full-text postings ``current`` of an entity or of one
    of its packs of spans; an empty list if there are no postings."""
    chunks: list[list[str]] = []
    room = 0
    for field, (level, token) in sorted(current):
        posting_json = json.dumps([field, level, token], ensure_ascii=False, separators=(",", ":"))
        if room < len(posting_json):
            chunks.append([])
            room = REVERSE_CHARACTERS
        chunks[-1].append(posting_json)
        room -= len(posting_json)
    return [
        _reverse(entity, of, number, f"[{','.join(chunk)}]", version)
        for number, chunk in enumerate(chunks)
    ]


def _reverse(
    entity: SourceEntity, of: str, number: int, postings_json: str, version: int | None
) -> Raw:
    key = reverse_key(entity, of, number)
    model = FtsRev(
        PK=key.pk,
        SK=key.sk,
        level=of,
        token=str(number),
        entity_type=entity.kind,
        entity_id=entity.entity_id,
        postings=postings_json,
        version=version,
    )
    return model.serialize()


def matches_key(experiment_id: str, stored: Raw) -> bool:
    """Whether the attributes of an FTS item agree with the key under which it is stored. Raises
    KeyError if an attribute is missing."""
    required = item(entity_of(experiment_id, stored), posting_of(stored), None)
    return all(required.get(name) == stored.get(name) for name in _GIVEN_BY_POSTING)


_GIVEN_BY_POSTING: Final = ("PK", "SK", "level", "gsi2pk", "gsi2sk")


def lists_more(stored: Raw, required: Raw) -> bool:
    """Whether ``stored`` lists the postings of the FTS_REV item ``required`` and more, such as
    postings of a field that the index no longer covers."""
    if not FtsRev.pattern.name == Item.of(stored).type == Item.of(required).type:
        return False
    identifying = (FtsRev.level, FtsRev.token, FtsRev.entity_type, FtsRev.entity_id)
    return all(
        stored.get(attribute.attr_name) == required.get(attribute.attr_name)
        for attribute in identifying
    ) and (postings_of(stored) > postings_of(required))


def posting_of(stored: Raw) -> Posting:
    """Returns the posting (field and token) of an FTS item of the full-text index. Raises KeyError
    if an attribute of the item is missing."""
    fts = Fts.of(stored)
    field = NAME if fts.field is None else fts.field
    return Posting(field, IndexToken(fts.level, fts.token))


def postings_of(stored: Raw) -> set[Posting]:
    """Returns the postings that an FTS_REV item lists."""
    listed: list[list[Any]] = json.loads(FtsRev.of(stored).postings)
    return {Posting(field, IndexToken(level, token)) for field, level, token in listed}


def entity_of(experiment_id: str, stored: Raw) -> SourceEntity:
    fts = Fts.of(stored)
    return SourceEntity(experiment_id, fts.entity_type, fts.entity_id)
