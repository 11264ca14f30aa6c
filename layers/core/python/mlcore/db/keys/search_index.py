"""Keys of the items that the indexer derives from others (ranks, full text, links), and of the
items that record its pending work.

Ranks are the sorted index of metrics and params; the mechanisms are described in
``docs/mechanisms/ranks.md`` and ``full-text.md``.
"""

from __future__ import annotations

from collections.abc import Iterable

from mlcore.db.keys.pattern import UPPER_BOUND, Key, Pattern, remembering
from mlcore.db.keys.runs import RUN
from mlcore.db.sortable import escape, escape_ordered

_EXP = "EXP#<experiment_id>"

_MAX_PREFIX_BYTES = 150
"""Maximum bytes of a searched prefix; keys shorten values only at a greater length."""

_MAX_TOKEN_PREFIX = 30
"""Maximum characters of a searched prefix of a token; keys shorten tokens only at a greater
length."""

DATASET_LINK = Pattern(
    "dataset_link",
    _EXP,
    "DLINK#<run_id>#<dataset_name>#<digest>",
    "a dataset that a run used",
    "indexer",
)
RANK_METRIC = Pattern(
    "rank_metric",
    _EXP,
    "RANK#m#<key>#<inv_value>#<run_id>",
    "a run's latest value, greatest first, NaN last",
    "indexer",
)
RANK_PARAM = Pattern(
    "rank_param", _EXP, "RANK#p#<key>#<value>#<run_id>", "a run's param, in text order", "indexer"
)
RANK_ROWS = Pattern(
    "rank_rows",
    _EXP,
    "RANKROWS#<rows_id>",
    "metrics of runs that were settled together, until they are sorted into segments",
    "indexer",
)
RANK_ROWS_SORTED = Pattern(
    "rank_rows_sorted",
    _EXP,
    "RANKROWS_SORTED",
    "how often rows were sorted into segments; sorts after all rows",
    "indexer",
)
RANK_SEGMENT = Pattern(
    "rank_segment",
    _EXP,
    "RANKSEGMENT#<key>#<number>#<segment_id>",
    "values of a metric in order, or the list of their pages; least merged first",
    "indexer",
)
RANK_PAGE = Pattern(
    "rank_page",
    _EXP,
    "RANKPAGE#<key>#<segment_id>#<number>",
    "a page of a segment",
    "indexer",
)
FTS = Pattern(
    "fts",
    _EXP,
    "FTS#<level>#<token>#<entity_type>#<entity_id>",
    "an entity that contains a token",
    "indexer",
)
FTS_REV = Pattern(
    "fts_rev",
    _EXP,
    "FTS_REV#<entity_type>#<entity_id>#<level>#<token>",
    "tokens of an entity",
    "indexer",
)
FTS_TEXTS = Pattern(
    "fts_texts",
    _EXP,
    "FTS_TEXTS",
    "the first words and values of an experiment's texts",
    "indexer",
)

MARKED_EXPERIMENT = Pattern(
    "marked_experiment",
    "MARKED",
    "MARKED#<experiment_id>",
    "an experiment that may have runs which the indexer has not processed",
    "indexer",
)

SEARCH_INDEX_PATTERNS = (
    DATASET_LINK,
    RANK_METRIC,
    RANK_PARAM,
    RANK_ROWS,
    RANK_ROWS_SORTED,
    RANK_SEGMENT,
    RANK_PAGE,
    FTS,
    FTS_REV,
    FTS_TEXTS,
    MARKED_EXPERIMENT,
)

_partition = remembering(RANK_METRIC.pk.build)
_RUN_PREFIX = RUN.sk.prefix()


def dataset_link(experiment_id: str, run_id: str, name: str, digest: str) -> Key:
    return Key(_partition(experiment_id), DATASET_LINK.sk.build(run_id, name, digest))


def dataset_links_prefix() -> str:
    """Returns the prefix of the sort keys of all runs' links to datasets."""
    return DATASET_LINK.sk.prefix()


def rank_metric(experiment_id: str, key: str, value: float, run_id: str) -> Key:
    return Key(_partition(experiment_id), RANK_METRIC.sk.build(key, value, run_id))


def rank_metric_range(key: str, highest: float, lowest: float) -> tuple[str, str]:
    """Returns inclusive bounds of the sort keys of a metric's values from ``highest`` down to
    ``lowest``: in key order the greatest value comes first, and NaN last."""
    return RANK_METRIC.sk.prefix(key, highest), RANK_METRIC.sk.prefix(key, lowest) + UPPER_BOUND


def rank_param(experiment_id: str, key: str, value: str, run_id: str) -> Key:
    return Key(_partition(experiment_id), RANK_PARAM.sk.build(key, value, run_id))


def runs_of_rank_params(sort_keys: Iterable[str]) -> list[str]:
    """Returns the sort keys of the runs that items of RANK_PARAM refer to, from the sort keys of
    these items: both end in the run's id, spelled in the same way."""
    return [_RUN_PREFIX + sk[sk.rindex("#") + 1 :] for sk in sort_keys]


def rank_param_value_prefix(key: str, value: str) -> str:
    """Returns the sort-key prefix of the index items of runs that logged this value of a param."""
    return RANK_PARAM.sk.prefix(key, value)


def rank_param_begin(key: str, text: str) -> str:
    """Returns the prefix of the sort keys of all values of a param that begin with the text. A long
    text is shortened, so more values may match."""
    begin = escape_ordered(text).encode()[:_MAX_PREFIX_BYTES].decode(errors="ignore")
    return RANK_PARAM.sk.prefix(key) + begin


def rank_rows(experiment_id: str, rows_id: str) -> Key:
    return Key(_partition(experiment_id), RANK_ROWS.sk.build(rows_id))


def rank_rows_prefix() -> str:
    """Returns the prefix of the sort keys of all ``RANKROWS`` items: metric values that are not
    sorted yet."""
    return RANK_ROWS.sk.prefix()


def rank_rows_sorted(experiment_id: str) -> Key:
    return Key(_partition(experiment_id), RANK_ROWS_SORTED.sk.build())


def rank_rows_range() -> tuple[str, str]:
    """Returns inclusive bounds of the sort keys of all ``RANKROWS`` items (metric values that are
    not sorted yet) and, after them, of the item that counts how often they were sorted."""
    return RANK_ROWS.sk.prefix(), RANK_ROWS_SORTED.sk.build()


def rank_segment(experiment_id: str, key: str, level: int, segment_id: str) -> Key:
    return Key(_partition(experiment_id), RANK_SEGMENT.sk.build(key, level, segment_id))


def rank_segment_prefix(key: str | None = None) -> str:
    """Returns the prefix of the sort keys of the rank segments (lists of sorted values) of the
    metric ``key``, or with None of all metrics."""
    return RANK_SEGMENT.sk.prefix() if key is None else RANK_SEGMENT.sk.prefix(key)


def rank_page(experiment_id: str, key: str, segment_id: str, number: int) -> Key:
    return Key(_partition(experiment_id), RANK_PAGE.sk.build(key, segment_id, number))


def fts(experiment_id: str, level: str, token: str, entity_type: str, entity_id: str) -> Key:
    return Key(_partition(experiment_id), FTS.sk.build(level, token, entity_type, entity_id))


def fts_begin(level: str, text: str) -> str:
    """Returns the prefix of the sort keys of all full-text tokens of a level (kind of token, such
    as ``word``) that begin with the text. A long text is shortened, so more tokens may match."""
    return FTS.sk.prefix(level) + escape(text[:_MAX_TOKEN_PREFIX])


def fts_numbers(level: str) -> tuple[str, str]:
    """Returns inclusive bounds of the sort keys of a level (whole values or words) of the full-text
    index. They contain all tokens that are numbers, and some others."""
    return FTS.sk.prefix(level) + "0", FTS.sk.prefix(level) + "9" + UPPER_BOUND


def fts_of_type_prefix(level: str, token: str, entity_type: str) -> str:
    """Returns the prefix of the sort keys of the entities of one type that have exactly this
    full-text token."""
    return FTS.sk.prefix(level, token, entity_type)


def fts_rev(experiment_id: str, entity_type: str, entity_id: str, level: str, token: str) -> Key:
    return Key(_partition(experiment_id), FTS_REV.sk.build(entity_type, entity_id, level, token))


def fts_rev_prefix(entity_type: str, entity_id: str) -> str:
    return FTS_REV.sk.prefix(entity_type, entity_id)


def fts_texts(experiment_id: str) -> Key:
    return Key(_partition(experiment_id), FTS_TEXTS.sk.build())


def marked_experiment(experiment_id: str) -> Key:
    return Key(MARKED_EXPERIMENT.pk.text, MARKED_EXPERIMENT.sk.build(experiment_id))


def marked_experiments_pk() -> str:
    return MARKED_EXPERIMENT.pk.text
