"""SQL macros for lists and maps. Functions that take a lambda are in
``dialect/collection_functions.py``."""

# ruff: noqa: E501 -- SQL in lines of its own length

from __future__ import annotations

from typing import Final

MACROS: Final = r"""
CREATE MACRO inner_has_null(list) AS list_count(list) < len(list);
CREATE MACRO spark_array_contains(list, x) AS
    CASE WHEN list_contains(list, x) THEN true WHEN inner_has_null(list) THEN NULL
         WHEN list IS NULL OR x IS NULL THEN NULL ELSE false END;
CREATE MACRO inner_same(a, b) AS a IS NOT DISTINCT FROM b;
CREATE MACRO inner_is_first(list, x, i) AS len(list_filter(list[:i - 1], lambda y: y IS NOT DISTINCT FROM x)) = 0;
CREATE MACRO spark_array_distinct(list) AS list_filter(list, lambda x, i: inner_is_first(list, x, i));
CREATE MACRO spark_array_sort(list) AS list_sort(list, 'ASC', 'NULLS LAST');
CREATE MACRO spark_sort_array(list) AS list_sort(list, 'ASC', 'NULLS FIRST'),
    (list, ascending) AS CASE WHEN ascending THEN list_sort(list, 'ASC', 'NULLS FIRST')
        ELSE list_sort(list, 'DESC', 'NULLS LAST') END;
CREATE MACRO spark_array_max(list) AS list_max(list);
CREATE MACRO spark_array_min(list) AS list_min(list);
CREATE MACRO spark_array_position(list, x) AS
    CASE WHEN list IS NULL OR x IS NULL THEN NULL ELSE CAST(coalesce(list_position(list, x), 0) AS BIGINT) END;
CREATE MACRO spark_array_remove(list, x) AS
    CASE WHEN x IS NULL THEN NULL ELSE list_filter(list, lambda y: y IS DISTINCT FROM x) END;
CREATE MACRO spark_array_append(list, x) AS CASE WHEN list IS NOT NULL THEN list_append(list, x) END;
CREATE MACRO spark_array_prepend(list, x) AS CASE WHEN list IS NOT NULL THEN list_prepend(x, list) END;
CREATE MACRO spark_array_compact(list) AS list_filter(list, lambda x: x IS NOT NULL);
CREATE MACRO inner_both(a, b) AS CASE WHEN a IS NULL OR b IS NULL THEN NULL ELSE list_concat(a, b) END;
CREATE MACRO inner_holds(list, x) AS len(list_filter(list, lambda y: y IS NOT DISTINCT FROM x)) > 0;
CREATE MACRO spark_array_union(a, b) AS spark_array_distinct(inner_both(a, b));
CREATE MACRO spark_array_intersect(a, b) AS
    CASE WHEN b IS NULL THEN NULL
         ELSE list_filter(spark_array_distinct(a), lambda x: inner_holds(b, x)) END;
CREATE MACRO spark_array_except(a, b) AS
    CASE WHEN b IS NULL THEN NULL
         ELSE list_filter(spark_array_distinct(a), lambda x: NOT inner_holds(b, x)) END;
CREATE MACRO spark_arrays_overlap(a, b) AS
    CASE WHEN a IS NULL OR b IS NULL THEN NULL WHEN list_has_any(a, b) THEN true
         WHEN len(a) > 0 AND len(b) > 0 AND (inner_has_null(a) OR inner_has_null(b)) THEN NULL
         ELSE false END;
CREATE MACRO spark_array_repeat(x, n) AS list_transform(range(CASE WHEN n < 0 THEN 0 ELSE n END), lambda i: x);
CREATE MACRO inner_joined(list, separator) AS
    CASE WHEN separator IS NULL THEN NULL WHEN len(list) = 0 THEN ''
         ELSE list_reduce(list, lambda a, b: a || separator || b) END;
CREATE MACRO spark_array_join(list, separator) AS
    inner_joined(list_transform(spark_array_compact(list), lambda x: spark_string(x)), separator),
    (list, separator, missing) AS
    CASE WHEN missing IS NOT NULL
         THEN inner_joined(list_transform(list, lambda x: coalesce(spark_string(x), missing)), separator) END;
CREATE MACRO inner_array_join(list, separator) AS
    array_to_string(list_transform(spark_array_compact(list), lambda x: spark_string(x)), separator),
    (list, separator, missing) AS
    CASE WHEN missing IS NOT NULL
         THEN array_to_string(list_transform(list, lambda x: coalesce(spark_string(x), missing)), separator) END;
CREATE MACRO inner_nulls(list, n) AS
    list_transform(range(greatest(n, 0)), lambda i: CASE WHEN i < 0 THEN list[1] END);
CREATE MACRO inner_with(list, n, x) AS
    list_concat(list_append(list_concat(list[1:n], inner_nulls(list, n - len(list))), x), list[n + 1:]);
CREATE MACRO spark_array_insert(list, p, x) AS
    CASE WHEN list IS NULL OR p IS NULL THEN NULL
         WHEN p = 0 THEN inner_fail('[INVALID_INDEX_OF_ZERO] The index 0 is invalid. The first element has index 1.')
         WHEN p > 0 THEN inner_with(list, p - 1, x)
         WHEN -p <= len(list) + 1 THEN inner_with(list, len(list) + p + 1, x)
         ELSE list_concat(list_prepend(x, inner_nulls(list, -p - len(list) - 1)), list) END;
CREATE MACRO inner_sorted(list, sorted) AS CASE WHEN len(list) < 2 THEN list ELSE sorted END;
CREATE MACRO inner_compared(order_of) AS
    coalesce(order_of, inner_fail('[COMPARATOR_RETURNS_NULL] The lambda of array_sort() returned NULL.'));
CREATE MACRO spark_flatten(list) AS
    CASE WHEN inner_has_null(list) THEN NULL ELSE flatten(list) END;
CREATE MACRO inner_slice(list, first, n) AS
    CASE WHEN first = 0 THEN inner_fail('[INVALID_PARAMETER_VALUE.START] slice() begins at 1, or at -1 from the end.')
         WHEN n < 0 THEN inner_fail('[INVALID_PARAMETER_VALUE.LENGTH] The length of slice() must not be negative.')
         WHEN n = 0 OR (first < 0 AND -first > len(list)) THEN list[1:0]
         WHEN first < 0 THEN list[len(list) + first + 1:len(list) + first + n]
         ELSE list[first:first + n - 1] END;
CREATE MACRO spark_slice(list, first, n) AS inner_slice(list, CAST(first AS BIGINT), CAST(n AS BIGINT));
CREATE MACRO spark_sequence(a DATE, b DATE) AS
        list_transform(generate_series(a, b, INTERVAL 1 DAY), lambda x: CAST(x AS DATE)),
    (a TIMESTAMPTZ, b TIMESTAMPTZ) AS generate_series(a, b, INTERVAL 1 DAY),
    (a BIGINT, b BIGINT) AS generate_series(a, b, CASE WHEN a <= b THEN 1 ELSE -1 END),
    (a DATE, b DATE, step INTERVAL) AS
        list_transform(generate_series(a, b, step), lambda x: CAST(x AS DATE)),
    (a TIMESTAMPTZ, b TIMESTAMPTZ, step INTERVAL) AS generate_series(a, b, step),
    (a BIGINT, b BIGINT, step BIGINT) AS generate_series(a, b, step);
CREATE MACRO inner_outside(i, n) AS
    inner_fail('[INVALID_ARRAY_INDEX] The index ' || i || ' is out of bounds. The array has ' || n
          || ' elements. Use get() or try_element_at() to get NULL instead.');
CREATE MACRO inner_item(x, k, size) AS
    CASE WHEN typeof(x) LIKE 'MAP(%' THEN inner_fail('Use element_at() for a map whose keys are no written texts.')
         WHEN k < 0 OR k >= size THEN inner_outside(k, size) ELSE x[k + 1] END;
CREATE MACRO spark_get(x, k) AS CASE WHEN k < 0 THEN NULL ELSE x[k + 1] END;
CREATE MACRO inner_get(x, k) AS CASE WHEN k >= 0 AND k < len(x) THEN x[k + 1] END;
CREATE MACRO spark_try_element_at(x, k) AS x[k];
CREATE MACRO inner_at(x, k, place, size) AS
    CASE WHEN typeof(x) LIKE 'MAP(%' OR (abs(place) <= size AND place <> 0) THEN x[k]
         WHEN x IS NULL OR k IS NULL THEN NULL ELSE inner_outside(place, size) END;
CREATE MACRO spark_map_keys(x) AS map_keys(x);
CREATE MACRO spark_map_values(x) AS map_values(x);
CREATE MACRO spark_map_entries(x) AS map_entries(x);
CREATE MACRO spark_map_from_entries(x) AS map_from_entries(x);
CREATE MACRO spark_map_from_arrays(keys, items) AS map(keys, items);
CREATE MACRO inner_zipped(a, b) AS CASE WHEN a IS NOT NULL AND b IS NOT NULL THEN list_zip(a, b) END;
CREATE MACRO spark_map_concat(x) AS x,
    (x, other) AS map_from_entries(inner_both(map_entries(x), map_entries(other)));
CREATE MACRO spark_map_contains_key(x, k) AS list_contains(map_keys(x), k);
CREATE MACRO inner_all(flags) AS
    CASE WHEN list_contains(flags, false) THEN false WHEN inner_has_null(flags) THEN NULL ELSE flags IS NOT NULL OR NULL END;
CREATE MACRO inner_any(flags) AS
    CASE WHEN list_contains(flags, true) THEN true WHEN inner_has_null(flags) THEN NULL
         WHEN flags IS NULL THEN NULL ELSE false END;
CREATE MACRO inner_members(x) AS list_transform(x, lambda one: spark_string(one));
"""
