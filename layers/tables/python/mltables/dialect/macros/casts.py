"""SQL macros for casts as in Databricks, which is stricter than DuckDB with texts, truncates
fractions where DuckDB rounds, and formats numbers and times differently.

Casts to INT and BIGINT first check whether the text is exactly as DuckDB would write the number,
which is nearly always true. Only other texts are matched with a regular expression, which is slow.
Casts of integers, and of doubles below 2^53, to BIGINT use no text.

``inner_fail(message)`` raises an error by a cast of its message. DuckDB's own ``error()`` would
make an expression volatile, and DuckDB refuses volatile expressions in PARTITION BY and ORDER BY of
a window. Its result comes from a slice because DuckDB knows nothing of a slice's members: it would
compute no expression that it knows to be NULL.
"""

# ruff: noqa: E501 -- SQL in lines of its own length

from __future__ import annotations

from typing import Final

_PLAIN: Final = '(VARCHAR|BOOLEAN|TINYINT|SMALLINT|INTEGER|BIGINT|"NULL")'
_MEMBER: Final = rf'([A-Za-z_]\w*|"[A-Za-z_]\w*") {_PLAIN}'
PLAIN_STRUCT: Final = rf"STRUCT\({_MEMBER}(, {_MEMBER})*\)"
"""DuckDB's types of structs whose members are texts, whole numbers or booleans, as an expression
for ``regexp_full_match``."""

MACROS: Final = r"""
CREATE MACRO inner_fail(message) AS (([NULL])[:CAST(message AS UTINYINT)])[1];
CREATE MACRO inner_bad(value, kind) AS
    inner_fail('[CAST_INVALID_INPUT] The value ''' || value || ''' of the type "STRING" cannot be cast to "'
          || kind || '". Use try_cast() to get NULL instead.');

CREATE MACRO inner_science(sign, digits, exponent) AS
    sign || digits[1] || '.' || coalesce(nullif(rtrim(digits[2:], '0'), ''), '0') || 'E' || exponent;
CREATE MACRO inner_small(sign, zeros_and_digits) AS
    inner_science(sign, ltrim(zeros_and_digits, '0'),
                  length(ltrim(zeros_and_digits, '0')) - length(zeros_and_digits) - 1);
CREATE MACRO inner_unsigned(sign, text, size) AS
    CASE WHEN size = 0 OR (size >= 1e-3 AND size < 1e7) THEN sign || text
         WHEN contains(text, 'e') THEN
            sign || split_part(text, 'e', 1)
            || CASE WHEN contains(text, '.') THEN '' ELSE '.0' END
            || 'E' || TRY_CAST(split_part(text, 'e', 2) AS INTEGER)
         WHEN size < 1 THEN inner_small(sign, split_part(text, '.', 2))
         ELSE inner_science(sign, replace(text, '.', ''), length(split_part(text, '.', 1)) - 1) END;
CREATE MACRO inner_double_text(text) AS
    CASE text WHEN 'nan' THEN 'NaN' WHEN 'inf' THEN 'Infinity' WHEN '-inf' THEN '-Infinity'
    ELSE inner_unsigned(CASE WHEN starts_with(text, '-') THEN '-' ELSE '' END, ltrim(text, '-'),
                        abs(TRY_CAST(text AS DOUBLE))) END;
CREATE MACRO inner_map_text(x) AS
    '{' || array_to_string(list_transform(map_entries(TRY_CAST(x AS MAP(VARCHAR, VARCHAR))),
        lambda entry: entry.key || ' -> ' || coalesce(entry."value", 'null')), ', ') || '}';
CREATE MACRO inner_list_text(x) AS
    '[' || array_to_string(list_transform(TRY_CAST(x AS VARCHAR[]),
        lambda member: coalesce(member, 'null')), ', ') || ']';
CREATE MACRO inner_struct_text(object) AS
    '{' || array_to_string(list_transform(json_keys(object),
        lambda name: coalesce(json_extract_string(object, '$."' || name || '"'), 'null')), ', ') || '}';
CREATE MACRO spark_string(x) AS
    CASE WHEN typeof(x) IN ('DOUBLE', 'FLOAT') THEN inner_double_text(CAST(x AS VARCHAR))
         WHEN typeof(x) = 'TIMESTAMP WITH TIME ZONE' THEN
            regexp_replace(CAST(x AS VARCHAR), '[+]00$', '')
         WHEN typeof(x) = 'INTERVAL' OR typeof(x) LIKE '%[]' OR typeof(x) LIKE 'MAP(%'
              OR typeof(x) LIKE 'STRUCT(%' THEN
            inner_fail('An interval cannot be cast to a STRING here, and of lists, maps and structs only those of texts, whole numbers and booleans.')
         ELSE CAST(x AS VARCHAR) END;
CREATE MACRO inner_text_of_value(x) AS
    CASE WHEN typeof(x) = 'MAP(VARCHAR, VARCHAR)' THEN inner_map_text(x)
         WHEN regexp_full_match(typeof(x), '%PLAIN%\[\]') THEN inner_list_text(x)
         WHEN regexp_full_match(typeof(x), '%STRUCT%') THEN
            CASE WHEN x IS NOT NULL THEN inner_struct_text(to_json(x)) END
         ELSE spark_string(x) END;

CREATE MACRO inner_is_special(text) AS regexp_full_match(lower(trim(text)), '[+-]?(nan|inf|infinity)');
CREATE MACRO inner_is_number(text) AS
    regexp_full_match(trim(text), '[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?');
CREATE MACRO inner_clean_integer(text) AS
    CASE WHEN regexp_full_match(trim(text), '[+-]?[0-9]+') THEN trim(text) END;
CREATE MACRO inner_clean_double(text) AS
    CASE WHEN inner_is_number(text) OR inner_is_special(text) THEN trim(text) END;
CREATE MACRO inner_clean_decimal(text) AS CASE WHEN inner_is_number(text) THEN trim(text) END;
CREATE MACRO inner_clean_boolean(text) AS
    CASE WHEN lower(trim(text)) IN ('t', 'true', 'y', 'yes', '1') THEN 'true'
         WHEN lower(trim(text)) IN ('f', 'false', 'n', 'no', '0') THEN 'false' END;
CREATE MACRO inner_clean_date(text) AS
    CASE WHEN regexp_full_match(trim(text), '[0-9]{4}') THEN trim(text) || '-01-01'
         WHEN regexp_full_match(trim(text), '[0-9]{4}-[0-9]{1,2}') THEN trim(text) || '-01'
         WHEN regexp_full_match(trim(text), '[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([ T].*)?')
         THEN regexp_extract(trim(text), '^[0-9-]+') END;
CREATE MACRO inner_clean_time(text) AS
    CASE WHEN regexp_full_match(trim(text), '[0-9]{4}(-[0-9]{1,2}(-[0-9]{1,2})?)?') THEN inner_clean_date(text)
         WHEN regexp_full_match(trim(text),
            '[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}[ T][0-9]{1,2}:[0-9]{1,2}(:[0-9]{1,2}([.][0-9]*)?)?( ?(Z|UTC|[+-][0-9]{1,2}(:[0-9]{2})?))?')
         THEN regexp_replace(trim(text), ' ?UTC$', 'Z') END;

CREATE MACRO inner_is_text(x) AS typeof(x) = 'VARCHAR';
CREATE MACRO inner_is_double(x) AS typeof(x) IN ('DOUBLE', 'FLOAT');
CREATE MACRO inner_is_moment(x) AS typeof(x) IN ('TIMESTAMP WITH TIME ZONE', 'TIMESTAMP');
CREATE MACRO inner_whole_part(text) AS split_part(text, '.', 1);
CREATE MACRO inner_instant(x) AS TRY_CAST(CAST(x AS VARCHAR) AS TIMESTAMPTZ);
CREATE MACRO inner_try_integer(x) AS
    CASE WHEN inner_is_text(x) THEN inner_clean_integer(CAST(x AS VARCHAR))
         WHEN inner_is_double(x) THEN CAST(trunc(TRY_CAST(x AS DOUBLE)) AS VARCHAR)
         WHEN typeof(x) = 'BOOLEAN' THEN CAST(TRY_CAST(x AS INTEGER) AS VARCHAR)
         WHEN inner_is_moment(x) THEN CAST(floor(epoch(inner_instant(x))) AS VARCHAR)
         ELSE inner_whole_part(CAST(x AS VARCHAR)) END;
CREATE MACRO inner_try_double(x) AS
    CASE WHEN inner_is_text(x) THEN inner_clean_double(CAST(x AS VARCHAR))
         WHEN typeof(x) = 'BOOLEAN' THEN CAST(TRY_CAST(x AS INTEGER) AS VARCHAR)
         WHEN inner_is_moment(x) THEN CAST(epoch(inner_instant(x)) AS VARCHAR)
         ELSE CAST(x AS VARCHAR) END;
CREATE MACRO inner_try_decimal(x) AS
    CASE WHEN inner_is_text(x) THEN inner_clean_decimal(CAST(x AS VARCHAR)) ELSE CAST(x AS VARCHAR) END;
CREATE MACRO inner_try_boolean(x) AS
    CASE WHEN inner_is_text(x) THEN inner_clean_boolean(CAST(x AS VARCHAR))
         WHEN typeof(x) = 'BOOLEAN' THEN CAST(x AS VARCHAR)
         ELSE CAST(TRY_CAST(x AS DOUBLE) <> 0 AS VARCHAR) END;
CREATE MACRO inner_try_date(x) AS
    CASE WHEN inner_is_text(x) THEN inner_clean_date(CAST(x AS VARCHAR))
         ELSE CAST(TRY_CAST(x AS DATE) AS VARCHAR) END;
CREATE MACRO inner_try_time(x) AS
    CASE WHEN inner_is_text(x) THEN inner_clean_time(CAST(x AS VARCHAR))
         WHEN typeof(x) = 'DATE' OR inner_is_moment(x) THEN CAST(x AS VARCHAR)
         ELSE CAST(to_timestamp(TRY_CAST(x AS DOUBLE)) AS VARCHAR) END;

CREATE MACRO inner_type_name(kind) AS
    CASE kind WHEN 'VARCHAR' THEN 'string' WHEN 'INTEGER' THEN 'int' WHEN 'HUGEINT' THEN 'bigint'
         WHEN 'TIMESTAMP WITH TIME ZONE' THEN 'timestamp' WHEN '"NULL"' THEN 'void' WHEN 'BLOB' THEN 'binary'
         ELSE CASE WHEN regexp_full_match(kind, '(BIGINT|SMALLINT|TINYINT|DOUBLE|FLOAT|BOOLEAN|DATE|DECIMAL\([0-9,]*\))')
                   THEN lower(kind) ELSE inner_fail('typeof() does not take arguments of these types.') END END;
CREATE MACRO spark_typeof(x) AS
    CASE WHEN regexp_full_match(typeof(x), '[^()\[]*\[\]') THEN 'array<' || inner_type_name(replace(typeof(x), '[]', '')) || '>'
         WHEN regexp_full_match(typeof(x), 'MAP\([^(),]*, [^(),\[]*\)') THEN
            'map<' || inner_type_name(regexp_extract(typeof(x), 'MAP\(([^,]*),', 1)) || ','
                   || inner_type_name(regexp_extract(typeof(x), ', ([^,]*)\)$', 1)) || '>'
         ELSE inner_type_name(typeof(x)) END;
CREATE MACRO inner_or_bad(text, value, kind) AS
    CASE WHEN text IS NULL THEN NULL ELSE coalesce(value, inner_bad(text, kind)) END;
CREATE MACRO inner_double_of(text) AS
    inner_or_bad(text, TRY_CAST(inner_clean_double(text) AS DOUBLE), 'DOUBLE');
CREATE MACRO inner_overflow(text, kind) AS
    inner_fail('[CAST_OVERFLOW] The value ' || text || ' cannot be cast to "' || kind || '" due to an overflow.');
CREATE MACRO inner_fits(x, value, kind) AS
    CASE WHEN x IS NULL THEN NULL WHEN value IS NOT NULL THEN value
         WHEN inner_is_text(x) THEN inner_bad(CAST(x AS VARCHAR), kind)
         WHEN typeof(x) = 'DATE' THEN inner_fail('A DATE cannot be cast to a number: use unix_date().')
         ELSE inner_overflow(CAST(x AS VARCHAR), kind) END;
CREATE MACRO inner_is_written(number, x) AS CAST(number AS VARCHAR) = CAST(x AS VARCHAR);
CREATE MACRO inner_plain_bigint(x) AS TRY_CAST(CAST(x AS VARCHAR) AS BIGINT);
CREATE MACRO inner_plain_int(x) AS TRY_CAST(CAST(x AS VARCHAR) AS INTEGER);
CREATE MACRO inner_is_integer(x) AS typeof(x) IN ('BIGINT', 'INTEGER', 'SMALLINT', 'TINYINT');
CREATE MACRO inner_is_exact_double(x) AS
    inner_is_double(x) AND abs(TRY_CAST(x AS DOUBLE)) < 9007199254740992;
CREATE MACRO inner_bigint(x) AS
    CASE WHEN inner_is_integer(x) THEN TRY_CAST(x AS BIGINT)
         WHEN inner_is_exact_double(x) THEN TRY_CAST(trunc(TRY_CAST(x AS DOUBLE)) AS BIGINT)
         WHEN inner_is_written(inner_plain_bigint(x), x) THEN inner_plain_bigint(x)
         ELSE inner_fits(x, TRY_CAST(inner_try_integer(x) AS BIGINT), 'BIGINT') END;
CREATE MACRO inner_int(x) AS
    CASE WHEN inner_is_written(inner_plain_int(x), x) THEN inner_plain_int(x)
         ELSE inner_fits(x, TRY_CAST(inner_try_integer(x) AS INTEGER), 'INT') END;
CREATE MACRO inner_smallint(x) AS inner_fits(x, TRY_CAST(inner_try_integer(x) AS SMALLINT), 'SMALLINT');
CREATE MACRO inner_tinyint(x) AS inner_fits(x, TRY_CAST(inner_try_integer(x) AS TINYINT), 'TINYINT');
CREATE MACRO inner_double(x) AS
    CASE WHEN typeof(x) IN ('DOUBLE', 'FLOAT', 'BIGINT', 'INTEGER', 'HUGEINT') THEN TRY_CAST(x AS DOUBLE)
         ELSE inner_fits(x, TRY_CAST(inner_try_double(x) AS DOUBLE), 'DOUBLE') END;
CREATE MACRO inner_as_number(x VARCHAR) AS inner_double_of(x), (x) AS x;
CREATE MACRO inner_decimal_text(x) AS inner_fits(x, inner_try_decimal(x), 'DECIMAL');
CREATE MACRO inner_boolean(x) AS inner_fits(x, TRY_CAST(inner_try_boolean(x) AS BOOLEAN), 'BOOLEAN');
CREATE MACRO inner_date_text(text) AS
    inner_or_bad(text, TRY_CAST(inner_clean_date(text) AS DATE), 'DATE');
CREATE MACRO spark_date(x) AS
    CASE WHEN inner_is_text(x) THEN inner_date_text(CAST(x AS VARCHAR))
         WHEN typeof(x) = 'TIMESTAMP WITH TIME ZONE' THEN
            CAST(make_timestamp(epoch_us(TRY_CAST(x AS TIMESTAMPTZ))) AS DATE)
         WHEN typeof(x) = 'DATE' OR inner_is_moment(x) OR x IS NULL THEN TRY_CAST(x AS DATE)
         ELSE inner_fail('A DATE is made of a text or a time: use date_from_unix_date() for a number.') END;
CREATE MACRO inner_time_text(text) AS
    inner_or_bad(text, TRY_CAST(inner_clean_time(text) AS TIMESTAMPTZ), 'TIMESTAMP');
CREATE MACRO inner_at_seconds(n) AS
    CASE WHEN typeof(n) NOT IN ('DOUBLE', 'FLOAT') THEN to_timestamp(n)
         WHEN isnan(CAST(n AS DOUBLE)) THEN NULL
         ELSE make_timestamptz(CAST(trunc(CAST(n AS DOUBLE) * 1000000) AS BIGINT)) END;
CREATE MACRO spark_timestamp(x) AS
    CASE WHEN inner_is_text(x) THEN inner_time_text(CAST(x AS VARCHAR))
         WHEN typeof(x) = 'DATE' OR inner_is_moment(x) OR x IS NULL THEN TRY_CAST(x AS TIMESTAMPTZ)
         WHEN typeof(x) IN ('DOUBLE', 'FLOAT', 'INTEGER', 'BIGINT', 'HUGEINT') OR starts_with(typeof(x), 'DECIMAL')
         THEN inner_at_seconds(TRY_CAST(x AS DOUBLE))
         ELSE inner_fail('A TIMESTAMP is made of a text, a date or a number.') END;
""".replace("%PLAIN%", _PLAIN).replace("%STRUCT%", PLAIN_STRUCT)
