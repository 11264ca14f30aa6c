"""Items that make search fast, written by the indexer; where runs are that it has not followed; and
markers that earlier versions put for that."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attributes import (
    BytesAttribute,
    DoubleAttribute,
    FlagAttribute,
    IntAttribute,
    TextAttribute,
    TextMapAttribute,
)
from mlcore.models.base import IndexedItem, Item


class EntityEntry(Item):
    """What an item of any kind may tell of the entity that it is about: a run, or ``entity_id``,
    and in which ``version``."""

    version = IntAttribute(null=True)
    run_id = TextAttribute(null=True)
    entity_type = TextAttribute(null=True)
    entity_id = TextAttribute(null=True)


class ExperimentEntry(Item):
    """What an item of any kind tells that is of an experiment, or is one."""

    experiment_id = TextAttribute()


class DatasetLink(Item):
    """A run used a dataset."""

    pattern = keys.DATASET_LINK

    version = IntAttribute(null=True)
    run_id = TextAttribute()
    name = TextAttribute()
    digest = TextAttribute()


class RankMetric(Item):
    """The place of a run's latest value among those of its experiment."""

    pattern = keys.RANK_METRIC

    version = IntAttribute(null=True)
    key = TextAttribute()
    value = DoubleAttribute()
    run_id = TextAttribute()


class RankParam(Item):
    """The place of a run's param among those of its experiment."""

    pattern = keys.RANK_PARAM

    version = IntAttribute(null=True)
    key = TextAttribute()
    value = TextAttribute()
    run_id = TextAttribute()


class RankRows(Item):
    """Latest values of runs that were settled together (``data``, as
    :mod:`mlcore.repos.runs.rank_columns` writes it)."""

    pattern = keys.RANK_ROWS

    data = BytesAttribute()


class RankRowsSorted(Item):
    """How often rows of an experiment were sorted into segments: a search that finds another number
    than before reads the segments again."""

    pattern = keys.RANK_ROWS_SORTED

    version = IntAttribute()


class RankSegment(Item):
    """Values of one metric, sorted: ``data``, if they are few, or pages, which begin at the places
    in ``bounds``. ``level`` is how often what is in it was merged."""

    pattern = keys.RANK_SEGMENT

    key = TextAttribute()
    level = IntAttribute()
    segment_id = TextAttribute()
    count = IntAttribute()  # type: ignore[assignment]  # hides Model.count, a query
    data = BytesAttribute(null=True)
    bounds = BytesAttribute(null=True)


class RankPage(Item):
    """Some values of a segment, in order."""

    pattern = keys.RANK_PAGE

    data = BytesAttribute()


class Fts(IndexedItem):
    """An entity holds a token, or texts do. ``level`` is the kind of token: word, value or trigram;
    ``field`` the text that holds it, if that is not the entity's name.

    Where ``entity_type`` is ``run_text`` or ``trace_text``, the entity is a word or a value of such
    entities, the token one of its trigrams, ``version`` tells one put from another, and
    ``leaving`` that somebody is about to take the text away.
    """

    pattern = keys.FTS

    version = IntAttribute(null=True)
    field = TextAttribute(null=True)

    level = TextAttribute()
    token = TextAttribute()
    entity_type = TextAttribute()
    entity_id = TextAttribute()
    leaving = FlagAttribute(null=True)


class FtsRev(Item):
    """Tokens of an entity, so that they can be taken away.

    ``postings`` has them: a JSON list of ``[field, level, token]``; ``token`` is the number of the
    item among those of its ``level``, which says what of the entity they are of. Items of earlier
    versions are one for each token, and have its level, text and field instead.
    """

    pattern = keys.FTS_REV

    version = IntAttribute(null=True)
    field = TextAttribute(null=True)

    level = TextAttribute()
    token = TextAttribute()
    entity_type = TextAttribute()
    entity_id = TextAttribute()
    postings = TextAttribute(null=True)


class FtsTexts(Item):
    """The first words and values that entities of an experiment hold, which therefore need no FTS
    items to be found by a part of them.

    ``texts`` has them by a JSON list ``[entity type, field, text]``, with what is known of each:
    ``held``, or ``leaving`` while somebody is about to take it away.
    """

    pattern = keys.FTS_TEXTS

    texts = TextMapAttribute()


class Pending(Item):
    """A marker of an earlier version: a write that the indexer had not followed, by the entity's
    ``write_id``. Now the run itself is marked, in LSI5."""

    pattern = keys.PENDING

    version = IntAttribute()
    entity_type = TextAttribute()
    entity_id = TextAttribute()
    write_id = TextAttribute()


class MarkedExperiment(Item):
    """An experiment that had, at ``updated_at``, runs which the indexer had not followed."""

    pattern = keys.MARKED_EXPERIMENT

    version = IntAttribute()
    experiment_id = TextAttribute()
