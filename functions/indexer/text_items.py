"""FTS and FTS_REV items: what the texts of an entity are in the full-text index of its experiment.

Pure functions. The place of an item holds the token and the entity, so a token that a text keeps
when it changes costs nothing. Any type of entity in an experiment's partition may have such items.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from indexer.projections import Writes, content
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.models.index import Fts, FtsRev
from mlcore.search import text_fields
from mlcore.search.text import Token, tokens
from mlcore.search.text_fields import NAME, Indexed, level_of

RUN = "run"
EXPERIMENT = "experiment"
TRACE = "trace"


class Entity(NamedTuple):
    experiment_id: str
    kind: str
    entity_id: str


class Posting(NamedTuple):
    """One of an entity's texts holds a token."""

    field: str
    token: Token


Texts = Mapping[str, str]
"""By field."""


def texts_of_run(image: Raw | None) -> dict[str, str]:
    """Every text of a run item that an index may hold."""
    if image is None:
        return {}
    tags = content(image, "tags")
    found = {text_fields.tag_field(key): value["S"] for key, value in tags.items()}
    for key, value in content(image, "params").items():
        found[text_fields.param_field(key)] = value["S"]
    for name in text_fields.ATTRIBUTES:
        if name in image:
            found[text_fields.attribute_field(name)] = image[name]["S"]
    return found


def name_of_experiment(image: Raw | None) -> dict[str, str]:
    return {} if image is None else {NAME: image["name"]["S"]}


def postings(texts: Texts, indexed: Indexed | None) -> set[Posting]:
    """All that the texts ask for."""
    if indexed is None:
        return set()
    return {
        Posting(field, token)
        for field, text in texts.items()
        if indexed.covers(field)
        for token in tokens(text)
    }


def changed(before: Texts, after: Texts) -> list[tuple[str, str, str]]:
    """(field, old text, new text) for each that differs; "" stands for an absent text, which has
    no tokens either."""
    return [
        (field, before.get(field, ""), after.get(field, ""))
        for field in before.keys() | after.keys()
        if before.get(field) != after.get(field)
    ]


def touched(changes: Iterable[tuple[str, str, str]], indexed: Indexed | None) -> set[Posting]:
    """What came or went with changes of texts."""
    return {
        Posting(field, token)
        for field, before, after in changes
        if indexed is not None and indexed.covers(field)
        for token in tokens(before) ^ tokens(after)
    }


def writes(
    entity: Entity, seen: set[Posting], current: set[Posting], version: int | None
) -> Writes:
    """Of the postings seen to come or go, those that are there now are put and all others go."""
    puts = [item for posting in sorted(seen & current) for item in items(entity, posting, version)]
    gone = [place for posting in sorted(seen - current) for place in places(entity, posting)]
    return Writes(puts, [], [], gone)


def places(entity: Entity, posting: Posting) -> tuple[Key, Key]:
    """Of the forward and the reverse item."""
    experiment_id, kind, entity_id = entity
    level = level_of(posting.token.level, posting.field)
    text = posting.token.text
    return (
        keys.fts(experiment_id, level, text, kind, entity_id),
        keys.fts_rev(experiment_id, kind, entity_id, level, text),
    )


def items(entity: Entity, posting: Posting, version: int | None) -> tuple[Raw, Raw]:
    """The forward item, which GSI2 finds in all experiments, and the reverse item.

    Args:
        version: that of the entity's item.
    """
    forward, reverse = places(entity, posting)
    field, (level, text) = posting
    gsi2pk, gsi2sk = keys.gsi2_fts(text, level_of(level, field), entity.kind, entity.entity_id)
    about: dict[str, Any] = {
        "level": level,
        "token": text,
        "field": None if field == NAME else field,
        "entity_type": entity.kind,
        "entity_id": entity.entity_id,
        "version": version,
    }
    return (
        dict(Fts(PK=forward.pk, SK=forward.sk, gsi2pk=gsi2pk, gsi2sk=gsi2sk, **about).serialize()),
        dict(FtsRev(PK=reverse.pk, SK=reverse.sk, **about).serialize()),
    )


def is_whole(experiment_id: str, item: Raw) -> bool:
    """Whether an item says what its key says. Raises KeyError."""
    entity, posting = entity_of(experiment_id, item), posting_of(item)
    place = Key(item["PK"]["S"], item["SK"]["S"])
    forward, reverse = places(entity, posting)
    if item["type"]["S"] == FtsRev.pattern.name:
        return place == reverse
    level, text = level_of(posting.token.level, posting.field), posting.token.text
    gsi2pk, gsi2sk = keys.gsi2_fts(text, level, entity.kind, entity.entity_id)
    return place == forward and (item["gsi2pk"]["S"], item["gsi2sk"]["S"]) == (gsi2pk, gsi2sk)


def posting_of(item: Raw) -> Posting:
    """What a forward or reverse item says. Raises KeyError."""
    field = item["field"]["S"] if "field" in item else NAME
    return Posting(field, Token(item["level"]["S"], item["token"]["S"]))


def entity_of(experiment_id: str, item: Raw) -> Entity:
    return Entity(experiment_id, item["entity_type"]["S"], item["entity_id"]["S"])
