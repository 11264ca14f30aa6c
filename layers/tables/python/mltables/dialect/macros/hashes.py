"""``hash()``: Murmur3 with 32 bits and the seed 42, as Spark computes it over its own layout of
values; it calculates with 64-bit integers, and multiplies with 128-bit ones, so that no product
overflows."""

# ruff: noqa: E501 -- SQL in lines of its own length

from __future__ import annotations

from typing import Final

MACROS: Final = r"""
CREATE MACRO inner_low(x) AS x & 4294967295;
CREATE MACRO inner_times(x, factor) AS CAST(CAST(x AS HUGEINT) * factor % 4294967296 AS BIGINT);
CREATE MACRO inner_rotate(x, n, other) AS ((x % (CAST(1 AS BIGINT) << other)) << n) | (x >> other);
CREATE MACRO inner_mix_word(word) AS
    inner_times(inner_rotate(inner_times(word, 3432918353), 15, 17), 461845907);
CREATE MACRO inner_mix(seed, word) AS
    (inner_rotate(xor(seed, inner_mix_word(word)), 13, 19) * 5 + 3864292196) % 4294967296;
CREATE MACRO inner_avalanche(h) AS
    list_reduce([h, 16, 2246822507, 13, 3266489909, 16], lambda x, y:
        CASE WHEN y < 32 THEN xor(x, x >> y) ELSE inner_times(x, y) END);
CREATE MACRO inner_finish(h, size) AS inner_avalanche(xor(h, CAST(size AS BIGINT)));
CREATE MACRO inner_unsigned_word(x) AS CAST((CAST(x AS HUGEINT) + 4294967296) % 4294967296 AS BIGINT);
CREATE MACRO inner_upper_word(x) AS
    CAST((((CAST(x AS HUGEINT) + 18446744073709551616) % 18446744073709551616) // 4294967296) AS BIGINT);
CREATE MACRO inner_lower_word(x) AS
    CAST((CAST(x AS HUGEINT) + 18446744073709551616) % 4294967296 AS BIGINT);
CREATE MACRO inner_hash_int(seed, x) AS inner_finish(inner_mix(seed, inner_unsigned_word(x)), 4);
CREATE MACRO inner_hash_long(seed, x) AS
    inner_finish(inner_mix(inner_mix(seed, inner_lower_word(x)), inner_upper_word(x)), 8);
CREATE MACRO inner_byte(code, i) AS CAST('0x' || code[2 * i + 1:2 * i + 2] AS INTEGER);
CREATE MACRO inner_word(code, i) AS
    CAST(inner_byte(code, i) + inner_byte(code, i + 1) * 256 + inner_byte(code, i + 2) * 65536
         + CAST(inner_byte(code, i + 3) AS BIGINT) * 16777216 AS BIGINT);
CREATE MACRO inner_signed_byte(code, i) AS
    CASE WHEN inner_byte(code, i) < 128 THEN CAST(inner_byte(code, i) AS BIGINT)
         ELSE inner_byte(code, i) + CAST(4294967040 AS BIGINT) END;
CREATE MACRO inner_words(code, size) AS
    list_concat(list_transform(range(size // 4), lambda i: inner_word(code, i * 4)),
                list_transform(range(size // 4 * 4, size), lambda i: inner_signed_byte(code, i)));
CREATE MACRO inner_hash_text(seed, code, size) AS
    inner_finish(list_reduce(inner_words(code, size), lambda h, word: inner_mix(h, word), CAST(seed AS BIGINT)), size);
CREATE MACRO inner_days_of(x) AS TRY_CAST(x AS DATE) - DATE '1970-01-01';
CREATE MACRO inner_hash(seed, x) AS
    CASE WHEN x IS NULL THEN seed
         WHEN typeof(x) = 'VARCHAR'
         THEN inner_hash_text(seed, hex(encode(CAST(x AS VARCHAR))), strlen(CAST(x AS VARCHAR)))
         WHEN typeof(x) IN ('TINYINT', 'SMALLINT', 'INTEGER') THEN inner_hash_int(seed, TRY_CAST(x AS INTEGER))
         WHEN typeof(x) IN ('BIGINT', 'HUGEINT') THEN inner_hash_long(seed, TRY_CAST(x AS BIGINT))
         WHEN typeof(x) = 'BOOLEAN' THEN inner_hash_int(seed, TRY_CAST(x AS INTEGER))
         WHEN typeof(x) = 'DATE' THEN inner_hash_int(seed, inner_days_of(x))
         WHEN typeof(x) = 'TIMESTAMP WITH TIME ZONE'
         THEN inner_hash_long(seed, epoch_us(TRY_CAST(CAST(x AS VARCHAR) AS TIMESTAMPTZ)))
         ELSE inner_fail('hash() takes texts, whole numbers, booleans, dates and times here.') END;
CREATE MACRO inner_signed(h) AS CAST(CASE WHEN h >= 2147483648 THEN h - 4294967296 ELSE h END AS INTEGER);
"""
