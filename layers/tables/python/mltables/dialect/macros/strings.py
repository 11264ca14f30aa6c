"""DuckDB macros for Databricks' string functions, and for functions on strings that hold JSON."""

# ruff: noqa: E501 -- SQL in lines of its own length

from __future__ import annotations

from typing import Final

from mltables.dialect.macros.casts import PLAIN_STRUCT

MACROS: Final = r"""
CREATE MACRO spark_length(s) AS CAST(length(s) AS INTEGER);
CREATE MACRO spark_len(s) AS CAST(length(s) AS INTEGER);
CREATE MACRO spark_char_length(s) AS CAST(length(s) AS INTEGER);
CREATE MACRO spark_character_length(s) AS CAST(length(s) AS INTEGER);
CREATE MACRO spark_octet_length(s) AS CAST(strlen(s) AS INTEGER);
CREATE MACRO spark_bit_length(s) AS CAST(strlen(s) * 8 AS INTEGER);
CREATE MACRO spark_ascii(s) AS CASE WHEN s = '' THEN 0 ELSE ascii(s) END;
CREATE MACRO spark_lcase(s) AS lower(s);
CREATE MACRO spark_ucase(s) AS upper(s);
CREATE MACRO spark_trim(s) AS trim(s, ' ');
CREATE MACRO spark_btrim(s) AS trim(s, ' '), (s, characters) AS trim(s, characters);
CREATE MACRO spark_ltrim(s) AS ltrim(s, ' '), (characters, s) AS ltrim(s, characters);
CREATE MACRO spark_rtrim(s) AS rtrim(s, ' '), (characters, s) AS rtrim(s, characters);
CREATE MACRO inner_pad(n) AS CAST(CASE WHEN n < 0 THEN 0 ELSE n END AS INTEGER);
CREATE MACRO spark_lpad(s, n) AS lpad(s, inner_pad(n), ' '),
    (s, n, pad) AS CASE WHEN pad = '' THEN left(s, inner_pad(n)) ELSE lpad(s, inner_pad(n), pad) END;
CREATE MACRO spark_rpad(s, n) AS rpad(s, inner_pad(n), ' '),
    (s, n, pad) AS CASE WHEN pad = '' THEN left(s, inner_pad(n)) ELSE rpad(s, inner_pad(n), pad) END;
CREATE MACRO spark_left(s, n) AS left(s, inner_pad(n));
CREATE MACRO spark_right(s, n) AS right(s, inner_pad(n));
CREATE MACRO inner_from(p) AS CASE WHEN p = 0 THEN 1 ELSE p END;
CREATE MACRO inner_part(s, p) AS CASE WHEN -p > length(s) THEN s ELSE substring(s, p) END,
    (s, p, n) AS CASE WHEN n <= 0 THEN '' WHEN -p > length(s)
        THEN left(s, greatest(CAST(n + length(s) + p AS INTEGER), 0)) ELSE substring(s, p, n) END;
CREATE MACRO spark_substring(s, p) AS inner_part(s, inner_from(p)),
    (s, p, n) AS inner_part(s, inner_from(p), n);
CREATE MACRO spark_substr(s, p) AS inner_part(s, inner_from(p)),
    (s, p, n) AS inner_part(s, inner_from(p), n);
CREATE MACRO inner_locate(part, s, p) AS
    CASE WHEN p IS NULL OR p < 1 THEN 0
         WHEN instr(substring(s, p), part) = 0 THEN 0
         ELSE CAST(instr(substring(s, p), part) + p - 1 AS INTEGER) END;
CREATE MACRO spark_locate(part, s) AS CAST(instr(s, part) AS INTEGER),
    (part, s, p) AS inner_locate(part, s, p);
CREATE MACRO spark_position(part, s) AS CAST(instr(s, part) AS INTEGER),
    (part, s, p) AS inner_locate(part, s, p);
CREATE MACRO spark_charindex(part, s) AS CAST(instr(s, part) AS INTEGER),
    (part, s, p) AS inner_locate(part, s, p);
CREATE MACRO spark_instr(s, part) AS CAST(instr(s, part) AS INTEGER);
CREATE MACRO spark_startswith(s, part) AS starts_with(s, part);
CREATE MACRO spark_endswith(s, part) AS ends_with(s, part);
CREATE MACRO spark_contains(s, part) AS contains(CAST(s AS VARCHAR), CAST(part AS VARCHAR));
CREATE MACRO spark_replace(s, old) AS replace(s, old, ''),
    (s, old, new) AS CASE WHEN old = '' THEN s ELSE replace(s, old, new) END;
CREATE MACRO spark_repeat(s, n) AS repeat(CAST(s AS VARCHAR), CASE WHEN n < 0 THEN 0 ELSE n END);
CREATE MACRO spark_space(n) AS repeat(' ', CASE WHEN n < 0 THEN 0 ELSE n END);
CREATE MACRO inner_reverse(x) AS
    CASE WHEN typeof(x) LIKE '%[]' THEN inner_fail('reverse() of this list: name the list in the call.')
         ELSE reverse(CAST(x AS VARCHAR)) END;
CREATE MACRO spark_initcap(s) AS
    array_to_string(list_transform(string_split(lower(s), ' '),
                                   lambda word: upper(word[1]) || word[2:]), ' ');
CREATE MACRO spark_levenshtein(a, b) AS CAST(levenshtein(a, b) AS INTEGER),
    (a, b, most) AS CAST(CASE WHEN levenshtein(a, b) > coalesce(most, 0) THEN -1 ELSE levenshtein(a, b) END AS INTEGER);
CREATE MACRO spark_overlay(s, new, p) AS
        left(s, inner_pad(p - 1)) || new || spark_substring(s, p + length(new)),
    (s, new, p, n) AS left(s, inner_pad(p - 1)) || new
        || spark_substring(s, p + CASE WHEN n < 0 THEN length(new) ELSE n END);
CREATE MACRO spark_mask(s) AS
    regexp_replace(regexp_replace(regexp_replace(s, '\p{Lu}', 'X', 'g'), '\p{Ll}', 'x', 'g'), '\p{Nd}', 'n', 'g');
CREATE MACRO spark_url_encode(s) AS
    replace(replace(replace(url_encode(s), '%20', '+'), '%2A', '*'), '~', '%7E');
CREATE MACRO inner_pair(pair, delimiter) AS
    struct_pack(key := regexp_split_to_array(pair, delimiter)[1],
        "value" := CASE WHEN regexp_matches(pair, delimiter) THEN substring(pair, length(
            regexp_split_to_array(pair, delimiter)[1]) + length(regexp_extract(pair, delimiter)) + 1) END);
CREATE MACRO inner_pairs(s, pairs, delimiter) AS
    CASE WHEN regexp_matches('', delimiter) OR (pairs <> '' AND regexp_matches('', pairs)) THEN
            inner_fail('str_to_map() takes no pattern that an empty text has.')
         WHEN pairs IS NOT NULL AND delimiter IS NOT NULL THEN
        map_from_entries(list_transform(regexp_split_to_array(s, pairs), lambda pair: inner_pair(pair, delimiter))) END;
CREATE MACRO spark_str_to_map(s) AS inner_pairs(s, ',', ':'),
    (s, pairs) AS inner_pairs(s, pairs, ':'),
    (s, pairs, delimiter) AS inner_pairs(s, pairs, delimiter);
CREATE MACRO inner_split_part(s, delimiter, n) AS
    CASE WHEN n = 0 THEN inner_fail('[INVALID_INDEX_OF_ZERO] The index 0 is invalid.')
         WHEN delimiter = '' THEN CASE WHEN n IN (1, -1) THEN s ELSE '' END
         ELSE split_part(s, delimiter, n) END;
CREATE MACRO spark_split_part(s, delimiter, n) AS inner_split_part(s, delimiter, CAST(n AS INTEGER));
CREATE MACRO inner_pieces(s, delimiter) AS string_split(s, delimiter);
CREATE MACRO spark_substring_index(s, delimiter, n) AS
    CASE WHEN s IS NULL OR delimiter IS NULL OR n IS NULL THEN NULL WHEN delimiter = '' OR n = 0 THEN ''
         WHEN n > 0 THEN array_to_string(inner_pieces(s, delimiter)[:CAST(n AS INTEGER)], delimiter)
         WHEN -n >= len(inner_pieces(s, delimiter)) THEN s
         ELSE array_to_string(inner_pieces(s, delimiter)[CAST(n AS INTEGER):], delimiter) END;
CREATE MACRO inner_rest(s, pattern, times) AS
    regexp_replace(s, '^(?s:.*?(?:' || pattern || '))' || times, '');
CREATE MACRO inner_split(s, pattern, most, times) AS
    CASE WHEN regexp_matches('', pattern) OR list_contains(regexp_extract_all(s, pattern), '') THEN
            inner_fail('With a limit, split() takes no pattern that an empty text has.')
         WHEN len(regexp_split_to_array(s, pattern)) > most THEN
            list_append(regexp_split_to_array(s, pattern)[1:most - 1], inner_rest(s, pattern, times))
         ELSE spark_split(s, pattern) END;
CREATE MACRO spark_split(s, pattern) AS CASE WHEN pattern IS NOT NULL THEN regexp_split_to_array(s, pattern) END;
CREATE MACRO spark_chr(n) AS CASE WHEN n < 0 THEN '' ELSE chr(CAST(n % 256 AS INTEGER)) END;
CREATE MACRO spark_char(n) AS CASE WHEN n < 0 THEN '' ELSE chr(CAST(n % 256 AS INTEGER)) END;
CREATE MACRO spark_base64(s) AS base64(encode(CAST(s AS VARCHAR)));
CREATE MACRO spark_sha(s) AS sha1(s);
CREATE MACRO spark_sha2(s, bits) AS
    CASE WHEN bits IN (0, 256) THEN sha256(s)
         ELSE inner_fail('sha2() has only 256 bits here.') END;
CREATE MACRO inner_elt(items, n) AS
    CASE WHEN n < 1 OR n > len(items) THEN inner_fail('[INVALID_ARRAY_INDEX] elt() has no value ' || n)
         ELSE items[n] END;
CREATE MACRO spark_uuid() AS CAST(uuid() AS VARCHAR);
CREATE MACRO spark_find_in_set(s, items) AS
    CASE WHEN s IS NULL OR items IS NULL THEN NULL WHEN contains(s, ',') THEN 0
         ELSE CAST(coalesce(list_position(string_split(items, ','), s), 0) AS INTEGER) END;

CREATE MACRO spark_rlike(s, pattern) AS regexp_matches(s, pattern);
CREATE MACRO spark_regexp(s, pattern) AS regexp_matches(s, pattern);
CREATE MACRO spark_regexp_like(s, pattern) AS regexp_matches(s, pattern);
CREATE MACRO spark_regexp_extract(s, pattern) AS regexp_extract(s, pattern, 1),
    (s, pattern, n) AS CASE WHEN n IS NOT NULL THEN regexp_extract(s, pattern, n) END;
CREATE MACRO spark_regexp_extract_all(s, pattern) AS regexp_extract_all(s, pattern, 1),
    (s, pattern, n) AS CASE WHEN n IS NOT NULL THEN regexp_extract_all(s, pattern, n) END;
CREATE MACRO spark_regexp_count(s, pattern) AS CAST(len(regexp_extract_all(s, pattern)) AS INTEGER);
CREATE MACRO spark_regexp_instr(s, pattern) AS
    CAST(CASE WHEN regexp_matches(s, pattern)
              THEN length(regexp_extract(s, '^((?s:.*?))(?:' || pattern || ')', 1)) + 1
              WHEN s IS NOT NULL AND pattern IS NOT NULL THEN 0 END AS INTEGER);
CREATE MACRO spark_regexp_substr(s, pattern) AS
    CASE WHEN regexp_matches(s, pattern) THEN regexp_extract(s, pattern) END;

CREATE MACRO spark_get_json_object(s, path) AS
    CASE WHEN json_valid(s) THEN json_extract_string(s, path) END;
CREATE MACRO spark_parse_json(s) AS
    CASE WHEN s IS NULL OR json_valid(s) THEN CAST(json(s) AS VARCHAR)
         ELSE inner_fail('[MALFORMED_RECORD_IN_PARSING] The text is no JSON. Use try_parse_json() to get NULL instead.') END;
CREATE MACRO spark_try_parse_json(s) AS CASE WHEN json_valid(s) THEN CAST(json(s) AS VARCHAR) END;
CREATE MACRO spark_json_array_length(s) AS
    CASE WHEN json_valid(s) AND json_type(s) = 'ARRAY' THEN CAST(json_array_length(s) AS INTEGER) END;
CREATE MACRO spark_json_object_keys(s) AS
    CASE WHEN json_valid(s) AND json_type(s) = 'OBJECT' THEN json_keys(s) END;
CREATE MACRO inner_json_member(object, name) AS json_extract(object, '$."' || name || '"');
CREATE MACRO inner_json_object(object) AS
    '{' || array_to_string(list_transform(
        list_filter(json_keys(object), lambda name: json_type(inner_json_member(object, name)) <> 'NULL'),
        lambda name: '"' || name || '":' || CAST(inner_json_member(object, name) AS VARCHAR)), ',') || '}';
CREATE MACRO inner_json_objects(list) AS
    '[' || array_to_string(list_transform(json_extract(list, '$[*]'),
        lambda member: coalesce(inner_json_object(member), 'null')), ',') || ']';
CREATE MACRO spark_to_json(x) AS
    CASE WHEN regexp_full_match(typeof(x), '(MAP\(VARCHAR, )?(VARCHAR|BOOLEAN|TINYINT|SMALLINT|INTEGER|BIGINT)(\)|\[\])')
         THEN CAST(to_json(x) AS VARCHAR)
         WHEN regexp_full_match(typeof(x), '%STRUCT%') THEN
            CASE WHEN x IS NOT NULL THEN inner_json_object(to_json(x)) END
         WHEN regexp_full_match(typeof(x), '%STRUCT%\[\]') THEN
            CASE WHEN x IS NOT NULL THEN inner_json_objects(to_json(x)) END
         ELSE inner_fail('to_json() does not take arguments of these types: it takes maps, lists and structs of texts, whole numbers and booleans here.') END;
""".replace("%STRUCT%", PLAIN_STRUCT)
