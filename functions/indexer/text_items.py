"""FTS and FTS_REV items: what the texts of an entity are in the full-text index of its experiment.

Pure functions. The place of an FTS item holds the token and the entity, so a token that a text
keeps when it changes costs nothing. FTS_REV items hold all tokens of an entity, some hundred in
each. Any type of entity in an experiment's partition may have such items. What leads from
stretches of words and values to them is in :mod:`indexer.text_dictionary`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from indexer.child_items import Entity, Posting, Writes, content
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import IndexKey, Key
from mlcore.models.experiments import Experiment
from mlcore.models.index import Fts, FtsRev
from mlcore.search import text, text_fields
from mlcore.search.text import Token
from mlcore.search.text_fields import NAME, Indexed, level_of

RUN = "run"
EXPERIMENT = "experiment"
TRACE = "trace"

OWN: Final = "texts"
"""The level of the FTS_REV items of what an entity's own item says."""
REVERSE_CHARACTERS: Final = 60_000
"""An FTS_REV item has about so many; one more is begun then."""


Texts = Mapping[str, str]
"""By field."""


def texts_of_run(image: Raw | None) -> dict[str, str]:
    """Every text of a run item that an index may hold."""
    if image is None:
        return {}
    tags = content(image, "tags")
    found = {text_fields.tag_field(key): value for key, value in tags.items()}
    for key, value in content(image, "params").items():
        found[text_fields.param_field(key)] = value
    for name in text_fields.ATTRIBUTES:
        if name in image:
            found[text_fields.attribute_field(name)] = image[name]["S"]
    return found


def name_of_experiment(image: Raw | None) -> dict[str, str]:
    return {} if image is None else {NAME: Experiment.of(image).name}


def postings(texts: Texts, indexed: Indexed | None) -> set[Posting]:
    """All that the texts ask for."""
    if indexed is None:
        return set()
    return {
        posting
        for field, found in texts.items()
        if indexed.covers(field)
        for posting in held(field, found)
    }


def held(field: str, found: str) -> set[Posting]:
    """What one text asks for: its words, or itself. An absent text (``""``) asks for nothing."""
    if text_fields.has_words(field):
        return {Posting(field, token) for token in text.words(found)}
    return {Posting(field, text.value(found))} if found else set()


def name_postings(texts: Texts) -> set[Posting]:
    """What the name of an experiment asks for, which has no dictionary: words and stretches."""
    return {Posting(field, token) for field, one in texts.items() for token in text.tokens(one)}


def changed(before: Texts, after: Texts) -> list[tuple[str, str, str]]:
    """(field, old text, new text) for each that differs; "" stands for an absent text."""
    return [
        (field, before.get(field, ""), after.get(field, ""))
        for field in before.keys() | after.keys()
        if before.get(field) != after.get(field)
    ]


def touched(changes: Iterable[tuple[str, str, str]], indexed: Indexed | None) -> set[Posting]:
    """What came or went with changes of texts."""
    return {
        posting
        for field, before, after in changes
        if indexed is not None and indexed.covers(field)
        for posting in held(field, before) ^ held(field, after)
    }


def writes(
    entity: Entity,
    seen: set[Posting],
    current: set[Posting],
    version: int | None,
    of: str = OWN,
) -> Writes:
    """Of the postings seen to come or go, those that are there now are put and all others go.

    Args:
        current: all that are there of ``of``, which the FTS_REV items hold then.
    """
    if not seen:
        return Writes([], [], [], [])
    puts = [item(entity, posting, version) for posting in sorted(seen & current)]
    left = sorted(seen - current)
    gone = [place(entity, posting) for posting in left]
    kept = reverse_items(entity, current, version, of)
    before = len(reverse_items(entity, seen | current, version, of))
    gone += [reverse_place(entity, of, number) for number in range(len(kept), before)]
    return Writes([*puts, *kept], [], [], gone, [(entity, posting) for posting in left])


def place(entity: Entity, posting: Posting) -> Key:
    level = level_of(posting.token.level, posting.field)
    return keys.fts(entity.experiment_id, level, posting.token.text, entity.kind, entity.entity_id)


def reverse_place(entity: Entity, of: str, number: int) -> Key:
    return keys.fts_rev(entity.experiment_id, entity.kind, entity.entity_id, of, str(number))


def item(entity: Entity, posting: Posting, version: int | None) -> Raw:
    """GSI2 finds names in all experiments.

    Args:
        version: that of the entity's item.
    """
    where = place(entity, posting)
    field, (level, found) = posting
    globally = IndexKey("", "")
    if field == NAME:
        globally = keys.gsi2_fts(found, level, entity.kind, entity.entity_id)
    made = Fts(
        PK=where.pk,
        SK=where.sk,
        level=level,
        token=found,
        field=None if field == NAME else field,
        entity_type=entity.kind,
        entity_id=entity.entity_id,
        version=version,
        gsi2pk=globally.pk or None,
        gsi2sk=globally.sk or None,
    )
    return made.serialize()


def reverse_items(
    entity: Entity, current: Iterable[Posting], version: int | None, of: str = OWN
) -> list[Raw]:
    """All tokens of an entity; none for none."""
    chunks: list[list[str]] = []
    room = 0
    for field, (level, found) in sorted(current):
        shown = json.dumps([field, level, found], ensure_ascii=False, separators=(",", ":"))
        if room < len(shown):
            chunks.append([])
            room = REVERSE_CHARACTERS
        chunks[-1].append(shown)
        room -= len(shown)
    return [
        _reverse(entity, of, number, f"[{','.join(chunk)}]", version)
        for number, chunk in enumerate(chunks)
    ]


def _reverse(entity: Entity, of: str, number: int, shown: str, version: int | None) -> Raw:
    where = reverse_place(entity, of, number)
    made = FtsRev(
        PK=where.pk,
        SK=where.sk,
        level=of,
        token=str(number),
        entity_type=entity.kind,
        entity_id=entity.entity_id,
        postings=shown,
        version=version,
    )
    return made.serialize()


def is_whole(experiment_id: str, found: Raw) -> bool:
    """Whether an FTS item says what its key says. Raises KeyError."""
    entity, (posting,) = entity_of(experiment_id, found), postings_of(found)
    right = item(entity, posting, None)
    return all(right.get(name) == found.get(name) for name in _TOLD)


_TOLD: Final = ("PK", "SK", "level", "gsi2pk", "gsi2sk")


def says_more(found: Raw, right: Raw) -> bool:
    """Whether an FTS_REV item differs from what it is to be by further tokens alone, such as those
    of a text that is not asked for any more."""
    if FtsRev.of(found).postings is None or FtsRev.of(right).postings is None:
        return False
    told = (FtsRev.level, FtsRev.token, FtsRev.entity_type, FtsRev.entity_id)
    return all(found.get(one.attr_name) == right.get(one.attr_name) for one in told) and (
        postings_of(found) > postings_of(right)
    )


def postings_of(found: Raw) -> set[Posting]:
    """What an FTS or FTS_REV item says, also one of an earlier version. Raises KeyError."""
    told = FtsRev.of(found)
    if told.postings is not None:
        listed: list[list[Any]] = json.loads(told.postings)
        return {Posting(field, Token(level, token)) for field, level, token in listed}
    field = NAME if told.field is None else told.field
    return {Posting(field, Token(told.level, told.token))}


def entity_of(experiment_id: str, found: Raw) -> Entity:
    told = FtsRev.of(found)
    return Entity(experiment_id, told.entity_type, told.entity_id)
