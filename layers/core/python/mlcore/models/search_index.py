"""Declares the items with which the indexer makes searches fast (ranks, full text, links), and the
items that list experiments with runs that it has not processed yet.

Mechanisms: ``docs/mechanisms/ranks.md`` and ``full-text.md``.
"""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attribute_types import (
    BytesAttribute,
    DoubleAttribute,
    FlagAttribute,
    IntAttribute,
    TextAttribute,
    TextMapAttribute,
)
from mlcore.models.base import IndexedItem, Item


class EntityEntry(Item):
    """Base of the indexer's items that name an entity (``run_id``, or ``entity_type`` and
    ``entity_id``) and the entity's ``version``."""

    version = IntAttribute(null=True)
    run_id = TextAttribute(null=True)
    entity_type = TextAttribute(null=True)
    entity_id = TextAttribute(null=True)


class ExperimentEntry(Item):
    """Base of those DynamoDB items of the indexer that have their experiment's id."""

    experiment_id = TextAttribute()


class DatasetLink(Item):
    """Records that a run used a dataset, so that runs are found by dataset."""

    pattern = keys.DATASET_LINK

    version = IntAttribute(null=True)
    run_id = TextAttribute()
    name = TextAttribute()
    digest = TextAttribute()


class RankMetric(Item):
    """A run's latest value of one metric, as an index entry sorted by value within the experiment.
    Used for metrics that the run's item has no room for."""

    pattern = keys.RANK_METRIC

    version = IntAttribute(null=True)
    key = TextAttribute()
    value = DoubleAttribute()
    run_id = TextAttribute()


class RankParam(Item):
    """A run's value of one param, as an index entry sorted by value within the experiment."""

    pattern = keys.RANK_PARAM

    version = IntAttribute(null=True)
    key = TextAttribute()
    value = TextAttribute()
    run_id = TextAttribute()


class RankRows(Item):
    """The latest metric values of several runs that became inactive together: an append-only part
    of the sorted index of metrics, not sorted yet. ``data`` is in the format of
    :mod:`mlcore.repos.runs.ranks.rank_columns`."""

    pattern = keys.RANK_ROWS

    data = BytesAttribute()


class RankRowsSorted(Item):
    """Counts in ``version`` how often the experiment's ``RankRows`` were sorted into segments. A
    search reads its segments again if the counter differs from what an earlier search of the same
    process read (from 0 for the first), because rows may have been sorted after it read them."""

    pattern = keys.RANK_ROWS_SORTED

    version = IntAttribute()


class RankSegment(Item):
    """A segment of the index of metric values: sorted values of one metric, with their runs. They
    are in ``data`` if they are few, else in pages, whose first values are in ``bounds``. ``level``
    is 1 for a new segment; each merge adds 1."""

    pattern = keys.RANK_SEGMENT

    key = TextAttribute()
    level = IntAttribute()
    segment_id = TextAttribute()
    count = IntAttribute()  # type: ignore[assignment]  # hides Model.count, a query
    data = BytesAttribute(null=True)
    bounds = BytesAttribute(null=True)


class RankPage(Item):
    """A page of a rank segment: some of the values of one metric, in order, with their runs."""

    pattern = keys.RANK_PAGE

    data = BytesAttribute()


class Fts(IndexedItem):
    """Full-text entry: an entity contains a token. ``level`` is the kind of token: word, value or
    trigram; ``field`` is the field that contains it, if that is not the entity's name.

    If ``entity_type`` is ``run_text`` or ``trace_text``, the entity is a word or value of runs or
    traces, and the token one of its trigrams. Then ``version`` distinguishes repeated writes, and
    ``leaving`` marks that the text is about to be deleted.
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
    """The tokens of an entity, stored so that its full-text entries can be deleted later.

    ``postings`` is a JSON list of ``[field, level, token]``, the parts of the keys of the entries.
    The item's own key attributes have these names and other meanings: ``level`` names the part of
    the entity that has these tokens, ``token`` is the number of the item, as a part may need
    several.
    """

    pattern = keys.FTS_REV

    version = IntAttribute(null=True)

    level = TextAttribute()
    token = TextAttribute()
    entity_type = TextAttribute()
    entity_id = TextAttribute()
    postings = TextAttribute()


class FtsTexts(Item):
    """The first words and values of an experiment's full-text index, kept in this one item, so that
    they need no FTS items for their trigrams.

    ``texts`` maps a JSON list ``[entity type, field, text]`` to the text's state: ``held``, or
    ``leaving`` while it is about to be deleted.
    """

    pattern = keys.FTS_TEXTS

    texts = TextMapAttribute()


class MarkedExperiment(Item):
    """Lists an experiment as having runs that the indexer had not processed at ``updated_at``."""

    pattern = keys.MARKED_EXPERIMENT

    version = IntAttribute()
    experiment_id = TextAttribute()
