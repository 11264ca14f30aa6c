"""Macros for arithmetic: NULL or NaN where DuckDB fails, integer results where Databricks has them, and
decimals with Databricks' number of decimal places."""

# ruff: noqa: E501 -- SQL in lines of its own length

from __future__ import annotations

from typing import Final

MACROS: Final = r"""
CREATE MACRO inner_is_decimal(kind) AS starts_with(kind, 'DECIMAL');
CREATE MACRO inner_digits(kind, digits) AS
    coalesce(digits, CASE kind WHEN 'TINYINT' THEN 3 WHEN 'SMALLINT' THEN 5 WHEN 'INTEGER' THEN 10
        WHEN 'BIGINT' THEN 20 WHEN 'HUGEINT' THEN 20 ELSE TRY_CAST(regexp_extract(kind, '[0-9]+') AS INTEGER) END);
CREATE MACRO inner_scale(kind) AS
    CASE WHEN inner_is_decimal(kind) THEN TRY_CAST(regexp_extract(kind, ',([0-9]+)', 1) AS INTEGER) ELSE 0 END;
CREATE MACRO inner_is_exact(kind) AS
    inner_is_decimal(kind) OR kind IN ('TINYINT', 'SMALLINT', 'INTEGER', 'BIGINT', 'HUGEINT');
CREATE MACRO inner_places(whole, places) AS
    CASE WHEN whole + places <= 38 THEN places ELSE greatest(38 - whole, least(places, 6)) END;
CREATE MACRO inner_quotient_places(p1, s1, p2, s2) AS
    inner_places(p1 - s1 + s2, greatest(6, s1 + p2 + 1));
CREATE MACRO inner_round_double(x, places) AS
    CASE WHEN places < 0 OR places > 18 OR NOT (abs(x) < 1e15) OR isnan(x) THEN round(x, places)
         ELSE CAST(round(CAST(CAST(x AS VARCHAR) AS DECIMAL(38, 18)), places) AS DOUBLE) END;
CREATE MACRO inner_divide(a, b, digits_a, digits_b) AS
    CASE WHEN inner_is_exact(typeof(a)) AND inner_is_exact(typeof(b))
              AND (inner_is_decimal(typeof(a)) OR inner_is_decimal(typeof(b)))
         THEN round(a / b, inner_quotient_places(
            inner_digits(typeof(a), digits_a), inner_scale(typeof(a)),
            inner_digits(typeof(b), digits_b), inner_scale(typeof(b))))
         ELSE a / b END;
CREATE MACRO inner_mean(mean, kind) AS
    CASE WHEN inner_is_decimal(kind) THEN round(mean, least(inner_scale(kind) + 4, 38))
         ELSE mean END;

CREATE MACRO inner_minus(a, b) AS inner_minus_untyped(a, b),
    (a DATE, b DATE) AS to_days(CAST(a - b AS INTEGER));
CREATE MACRO inner_minus_untyped(a, b) AS
    CASE WHEN typeof(a) = 'DATE' AND typeof(b) = 'DATE'
         THEN inner_fail('The difference of these dates is datediff(end, start) here.') ELSE a - b END;
CREATE MACRO inner_no_date(x) AS
    CASE WHEN typeof(x) = 'DATE'
         THEN inner_fail('To a DATE an interval is added by date_add(), or as CAST(… AS DATE) + INTERVAL … here.')
         ELSE x END;
CREATE MACRO inner_total(total) AS
    CASE WHEN typeof(total) = 'HUGEINT' THEN CAST(total AS BIGINT) ELSE total END;
CREATE MACRO inner_summand(x VARCHAR) AS
    CAST(CASE WHEN inner_is_number(x) OR inner_is_special(x) THEN trim(x) ELSE x || ' is no number' END AS DOUBLE),
    (x) AS x;
CREATE MACRO inner_try_total(total) AS
    CASE WHEN typeof(total) = 'HUGEINT' THEN TRY_CAST(total AS BIGINT) ELSE total END;
CREATE MACRO spark_div(a, b) AS CAST(a // b AS BIGINT);
CREATE MACRO spark_mod(a, b) AS a % b;
CREATE MACRO spark_pmod(a, b) AS CASE WHEN a % b < 0 THEN (a % b + b) % b ELSE a % b END;
CREATE MACRO spark_negative(x) AS -x;
CREATE MACRO spark_positive(x) AS x;
CREATE MACRO spark_try_divide(a, b) AS CASE WHEN b = 0 THEN NULL ELSE inner_divide(a, b, NULL, NULL) END;
CREATE MACRO spark_try_add(a, b) AS TRY(a + b);
CREATE MACRO spark_try_subtract(a, b) AS TRY(a - b);
CREATE MACRO spark_try_multiply(a, b) AS TRY(a * b);
CREATE MACRO spark_try_mod(a, b) AS CASE WHEN b = 0 THEN NULL ELSE a % b END;

CREATE MACRO inner_nan() AS CAST('nan' AS DOUBLE);
CREATE MACRO inner_ln(x) AS CASE WHEN isnan(x) THEN x WHEN x <= 0 THEN NULL ELSE ln(x) END;
CREATE MACRO spark_ln(x) AS inner_ln(CAST(x AS DOUBLE));
CREATE MACRO spark_log(x) AS inner_ln(CAST(x AS DOUBLE)),
    (base, x) AS inner_ln(CAST(x AS DOUBLE)) / inner_ln(CAST(base AS DOUBLE));
CREATE MACRO spark_log10(x) AS
    CASE WHEN isnan(CAST(x AS DOUBLE)) THEN CAST(x AS DOUBLE) WHEN x <= 0 THEN NULL ELSE log10(x) END;
CREATE MACRO spark_log2(x) AS
    CASE WHEN isnan(CAST(x AS DOUBLE)) THEN CAST(x AS DOUBLE) WHEN x <= 0 THEN NULL ELSE log2(x) END;
CREATE MACRO spark_log1p(x) AS CASE WHEN x <= -1 THEN NULL
    WHEN abs(x) < 1e-5 THEN x - x * x / 2 + x * x * x / 3 ELSE inner_ln(CAST(1 + x AS DOUBLE)) END;
CREATE MACRO spark_expm1(x) AS
    CASE WHEN abs(x) < 1e-5 THEN x + x * x / 2 + x * x * x / 6 ELSE exp(x) - 1 END;
CREATE MACRO spark_sqrt(x) AS CASE WHEN x < 0 THEN inner_nan() ELSE sqrt(x) END;
CREATE MACRO inner_pow(x, y) AS
    CASE WHEN x = 0 AND y < 0 THEN CAST('inf' AS DOUBLE)
         WHEN x < 0 AND y <> floor(y) THEN inner_nan() ELSE pow(x, y) END;
CREATE MACRO spark_pow(x, y) AS inner_pow(CAST(x AS DOUBLE), CAST(y AS DOUBLE));
CREATE MACRO spark_power(x, y) AS inner_pow(CAST(x AS DOUBLE), CAST(y AS DOUBLE));
CREATE MACRO spark_acos(x) AS CASE WHEN abs(x) > 1 THEN inner_nan() ELSE acos(x) END;
CREATE MACRO spark_asin(x) AS CASE WHEN abs(x) > 1 THEN inner_nan() ELSE asin(x) END;
CREATE MACRO spark_e() AS exp(1);
CREATE MACRO spark_sign(x) AS CAST(sign(x) AS DOUBLE);
CREATE MACRO spark_signum(x) AS CAST(sign(x) AS DOUBLE);
CREATE MACRO spark_hypot(a, b) AS sqrt(CAST(a AS DOUBLE) * a + CAST(b AS DOUBLE) * b);
CREATE MACRO spark_ceil(x) AS CAST(ceil(x) AS BIGINT);
CREATE MACRO spark_ceiling(x) AS CAST(ceil(x) AS BIGINT);
CREATE MACRO spark_floor(x) AS CAST(floor(x) AS BIGINT);
CREATE MACRO inner_is_fraction(kind) AS kind IN ('DOUBLE', 'FLOAT');
CREATE MACRO inner_round(x, places) AS
    CASE WHEN inner_is_fraction(typeof(x)) THEN inner_round_double(TRY_CAST(x AS DOUBLE), places)
         ELSE round(x, places) END;
CREATE MACRO inner_is_tie(x, places) AS
    abs(CAST(CAST(abs(x) AS DECIMAL(38, 18)) * power(10, places) AS DOUBLE) % 1 - 0.5) < 1e-12;
CREATE MACRO inner_even(x, places) AS
    CASE WHEN NOT (abs(x) < 1e15) OR isnan(x) THEN x
         WHEN inner_is_tie(x, places) THEN 2 * inner_round_double(x / 2, places)
         ELSE inner_round_double(x, places) END;
CREATE MACRO spark_bround(x) AS inner_even(CAST(x AS DOUBLE), 0),
    (x, places) AS inner_even(CAST(x AS DOUBLE), places);
CREATE MACRO spark_bin(x) AS bin(inner_bigint(x));
CREATE MACRO spark_sec(x) AS 1 / cos(CAST(x AS DOUBLE));
CREATE MACRO spark_csc(x) AS
    CASE WHEN x = 0 THEN CAST('Infinity' AS DOUBLE) ELSE 1 / sin(CAST(x AS DOUBLE)) END;
CREATE MACRO spark_rint(x) AS round_even(CAST(x AS DOUBLE), 0);
CREATE MACRO spark_factorial(n) AS
    CASE WHEN n < 0 OR n > 20 THEN NULL ELSE CAST(factorial(CAST(n AS INTEGER)) AS BIGINT) END;
CREATE MACRO spark_isnan(x) AS coalesce(isnan(CAST(x AS DOUBLE)), false);
CREATE MACRO spark_nanvl(a, b) AS CASE WHEN isnan(CAST(a AS DOUBLE)) THEN CAST(b AS DOUBLE) ELSE CAST(a AS DOUBLE) END;
CREATE MACRO spark_bit_count(x) AS CAST(bit_count(CAST(x AS BIGINT)) AS INTEGER);
CREATE MACRO spark_width_bucket(x, low, high, n) AS
    CASE WHEN n <= 0 OR low = high THEN NULL
         WHEN low < high AND x < low THEN 0 WHEN low < high AND x >= high THEN CAST(n AS BIGINT) + 1
         WHEN low > high AND x > low THEN 0 WHEN low > high AND x <= high THEN CAST(n AS BIGINT) + 1
         ELSE CAST(floor(n * (x - low) / CAST(high - low AS DOUBLE)) AS BIGINT) + 1 END;

CREATE MACRO inner_moment(list, mean, power) AS
    list_sum(list_transform(list, lambda x: pow(x - mean, power))) / len(list);
CREATE MACRO inner_skewness(list, mean) AS
    CASE WHEN len(list) = 0 OR inner_moment(list, mean, 2) = 0 THEN NULL
         ELSE inner_moment(list, mean, 3) / pow(inner_moment(list, mean, 2), 1.5) END;
CREATE MACRO inner_kurtosis(list, mean) AS
    CASE WHEN len(list) = 0 OR inner_moment(list, mean, 2) = 0 THEN NULL
         ELSE inner_moment(list, mean, 4) / pow(inner_moment(list, mean, 2), 2) - 3 END;
"""
