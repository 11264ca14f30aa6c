"""Macros for ``from_json()`` and ``variant_explode()``: convert values of DuckDB's type JSON as
Databricks does. If a JSON value does not have the wanted type, the result is NULL."""

# ruff: noqa: E501 -- SQL in lines of its own length

from __future__ import annotations

from typing import Final

MACROS: Final = r"""
CREATE MACRO inner_json_source(x) AS
    CASE WHEN typeof(x) IN ('VARCHAR', 'JSON', '"NULL"') THEN CAST(x AS VARCHAR)
         ELSE inner_fail('from_json() takes a text.') END;
CREATE MACRO inner_json(text) AS TRY_CAST(text AS JSON);
CREATE MACRO inner_json_of_root(json) AS CASE WHEN json_type(json) = 'OBJECT' THEN json END;
CREATE MACRO inner_json_root(text) AS inner_json_of_root(inner_json(text));
CREATE MACRO inner_json_in_list(json) AS
    CASE WHEN json_type(json) = 'OBJECT' THEN CAST('[' || CAST(json AS VARCHAR) || ']' AS JSON) ELSE json END;
CREATE MACRO inner_json_items(text) AS inner_json_in_list(inner_json(text));
CREATE MACRO inner_json_at(json, name) AS
    json_extract(json, '/' || replace(replace(name, '~', '~0'), '/', '~1'));
CREATE MACRO inner_json_members(json) AS
    list_transform(json_keys(json), lambda name: inner_json_at(json, name));
CREATE MACRO inner_variant_members(json) AS
    CASE json_type(json)
         WHEN 'ARRAY' THEN list_transform(json_extract(json, '$[*]'), lambda member, place:
            struct_pack(pos := CAST(place - 1 AS INTEGER), key := CAST(NULL AS VARCHAR), "value" := inner_json_text(member)))
         WHEN 'OBJECT' THEN list_transform(json_keys(json), lambda name, place:
            struct_pack(pos := CAST(place - 1 AS INTEGER), key := name, "value" := inner_json_text(inner_json_at(json, name)))) END;
CREATE MACRO inner_variant_items(text) AS inner_variant_members(inner_json(CAST(text AS VARCHAR)));
CREATE MACRO inner_json_present(members) AS
    len(list_filter(members, lambda member: json_type(member) <> 'NULL'));
CREATE MACRO inner_json_string(json) AS
    CASE WHEN json_type(json) = 'VARCHAR' THEN json_extract_string(json, '$') END;
CREATE MACRO inner_json_number_text(text) AS
    CASE WHEN regexp_full_match(text, '-?[0-9]+') THEN text ELSE spark_string(CAST(text AS DOUBLE)) END;
CREATE MACRO inner_json_text(json) AS
    CASE json_type(json) WHEN 'VARCHAR' THEN json_extract_string(json, '$') WHEN 'NULL' THEN NULL
         WHEN 'DOUBLE' THEN inner_json_number_text(CAST(json AS VARCHAR)) ELSE CAST(json AS VARCHAR) END;
CREATE MACRO inner_json_boolean(json) AS
    CASE WHEN json_type(json) = 'BOOLEAN' THEN CAST(json AS VARCHAR) = 'true' END;
CREATE MACRO inner_json_integer(json) AS
    CASE WHEN json_type(json) IN ('BIGINT', 'UBIGINT') THEN CAST(json AS VARCHAR) END;
CREATE MACRO inner_json_number(json) AS
    CASE WHEN json_type(json) IN ('BIGINT', 'UBIGINT', 'DOUBLE') THEN CAST(json AS VARCHAR) END;
CREATE MACRO inner_json_decimal(json) AS
    coalesce(inner_json_number(json), inner_clean_decimal(inner_json_string(json)));
CREATE MACRO inner_json_special(text) AS
    CASE WHEN text = 'NaN' THEN CAST('nan' AS DOUBLE)
         WHEN text IN ('Infinity', '+Infinity', 'INF', '+INF') THEN CAST('inf' AS DOUBLE)
         WHEN text IN ('-Infinity', '-INF') THEN CAST('-inf' AS DOUBLE) END;
CREATE MACRO inner_json_double(json) AS
    coalesce(TRY_CAST(inner_json_number(json) AS DOUBLE), inner_json_special(inner_json_string(json)));
CREATE MACRO inner_json_date(json) AS TRY_CAST(inner_clean_date(inner_json_string(json)) AS DATE);
CREATE MACRO inner_json_time(json) AS
    CASE WHEN json_type(json) = 'VARCHAR' THEN TRY_CAST(inner_clean_time(inner_json_string(json)) AS TIMESTAMPTZ)
         ELSE TRY(to_timestamp(TRY_CAST(inner_json_integer(json) AS BIGINT))) END;
"""
