"""Macros of DuckDB for the SQL functions of dates and times, all in UTC, DuckDB's time zone here.

DuckDB computes with a TIMESTAMP WITH TIME ZONE by a calendar of the library ICU, which takes ten
times as long as with a TIMESTAMP. In UTC both give the same results, except for years before 1. So
where speed matters, these macros convert the time with ``inner_utc(time)`` first. A number of
microseconds below DuckDB's least time must fail. Only ICU refuses it, so ``inner_at_micros``
converts such numbers with ICU.

A macro repeats an argument wherever its parameter stands. ``spark_months_between`` binds its
arguments to members of lists first; otherwise its expression would take seconds to plan.

The SQL generator casts a macro's argument to DATE if the name of its parameter ends in ``day``, to
TIMESTAMP if it ends in ``time``.
"""

# ruff: noqa: E501 -- SQL in lines of its own length

from __future__ import annotations

from typing import Final

_FIELDS: Final = {
    "year": "year(time)",  # inner_utc() would give 0 for the year before 1, not -1
    "yearofweek": "isoyear(time)",
    "quarter": "quarter(inner_utc(time))",
    "month": "month(inner_utc(time))",
    "week": "weekofyear(inner_utc(time))",
    "weekofyear": "weekofyear(inner_utc(time))",
    "day": "day(inner_utc(time))",
    "dayofmonth": "day(inner_utc(time))",
    "dayofweek": "dayofweek(inner_utc(time)) + 1",
    "weekday": "isodow(inner_utc(time)) - 1",
    "dayofyear": "dayofyear(inner_utc(time))",
    "hour": "hour(inner_utc(time))",
    "minute": "minute(inner_utc(time))",
    "second": "second(inner_utc(time))",
}
_FIELD_MACROS: Final = "".join(
    f"CREATE MACRO spark_{name}(time) AS CAST({field} AS INTEGER);\n"
    for name, field in _FIELDS.items()
)
MACROS: Final = (
    r"""
CREATE MACRO inner_utc(time) AS make_timestamp(epoch_us(time));
CREATE MACRO inner_of_utc(moment) AS make_timestamptz(epoch_us(moment));
CREATE MACRO inner_at_micros(n) AS
    CASE WHEN n < -9223372022400000000 THEN CAST(make_timestamp(n) AS TIMESTAMPTZ) ELSE make_timestamptz(n) END;
"""
    + _FIELD_MACROS
    + r"""
CREATE MACRO spark_dayname(day) AS left(dayname(day), 3);
CREATE MACRO spark_monthname(day) AS left(monthname(day), 3);
CREATE MACRO inner_extract_second(time) AS
    CAST(second(time) + (microsecond(time) % 1000000) / 1e6 AS DECIMAL(8, 6));
CREATE MACRO inner_extract_dayofweek_iso(time) AS CAST(isodow(time) AS INTEGER);

CREATE MACRO spark_date_add(day, n) AS day + CAST(n AS INTEGER);
CREATE MACRO spark_date_sub(day, n) AS day - CAST(n AS INTEGER);
CREATE MACRO spark_add_months(day, n) AS CAST(day + to_months(CAST(n AS INTEGER)) AS DATE);
CREATE MACRO inner_days(day, other_day) AS CAST(day - other_day AS INTEGER);
CREATE MACRO spark_last_day(day) AS last_day(day);
CREATE MACRO inner_next_day(day, n) AS day + CAST((n - isodow(day) + 6) % 7 + 1 AS INTEGER);
CREATE MACRO inner_weekday(name) AS
    CASE WHEN lower(name) IN ('mo', 'mon', 'monday') THEN 1
         WHEN lower(name) IN ('tu', 'tue', 'tuesday') THEN 2
         WHEN lower(name) IN ('we', 'wed', 'wednesday') THEN 3
         WHEN lower(name) IN ('th', 'thu', 'thursday') THEN 4
         WHEN lower(name) IN ('fr', 'fri', 'friday') THEN 5
         WHEN lower(name) IN ('sa', 'sat', 'saturday') THEN 6
         WHEN lower(name) IN ('su', 'sun', 'sunday') THEN 7
         WHEN name IS NULL THEN NULL
         ELSE inner_fail('[ILLEGAL_DAY_OF_WEEK] Illegal input for day of week: ' || name) END;
CREATE MACRO spark_next_day(day, name) AS inner_next_day(day, inner_weekday(name));
CREATE MACRO inner_is_last(day) AS day = last_day(day);
CREATE MACRO inner_in_month(time) AS
    day(time) * 86400 + hour(time) * 3600 + minute(time) * 60 + second(time);
CREATE MACRO inner_months(time) AS year(time) * 12 + month(time);
CREATE MACRO inner_months_between(a, b) AS
    CASE WHEN day(a) = day(b) OR (inner_is_last(CAST(a AS DATE)) AND inner_is_last(CAST(b AS DATE)))
         THEN CAST(inner_months(a) - inner_months(b) AS DOUBLE)
         ELSE inner_months(a) - inner_months(b)
              + (inner_in_month(a) - inner_in_month(b)) / 2678400.0 END;
CREATE MACRO spark_months_between(time, other_time) AS
    list_transform(
        list_transform([[time, other_time]], lambda times: inner_months_between(times[1], times[2])),
        lambda months: inner_round_double(CAST(months AS DOUBLE), 8))[1];

CREATE MACRO inner_unit(name) AS
    CASE WHEN lower(name) IN ('year', 'yyyy', 'yy') THEN 'year'
         WHEN lower(name) = 'quarter' THEN 'quarter'
         WHEN lower(name) IN ('month', 'mon', 'mm') THEN 'month'
         WHEN lower(name) = 'week' THEN 'week' END;
CREATE MACRO inner_small_unit(name) AS
    CASE WHEN lower(name) IN ('day', 'dd') THEN 'day'
         WHEN lower(name) IN ('hour', 'minute', 'second', 'millisecond', 'microsecond')
         THEN lower(name) ELSE inner_unit(name) END;
CREATE MACRO inner_window_from(micros, size) AS
    struct_pack("start" := make_timestamptz(micros), "end" := make_timestamptz(micros + size));
CREATE MACRO inner_window(time, size, first) AS
    inner_window_from(epoch_us(time) - ((epoch_us(time) - first) % size + size) % size, size);
CREATE MACRO spark_trunc(day, name) AS CAST(date_trunc(inner_unit(name), day) AS DATE);
CREATE MACRO spark_date_trunc(name, time) AS
    inner_of_utc(date_trunc(inner_small_unit(name), inner_utc(time)));

CREATE MACRO inner_whole(a, b) AS CAST(sign(a) AS BIGINT) * (abs(a) // b);
CREATE MACRO inner_passed(time, other_time, microseconds) AS
    inner_whole(epoch_us(other_time) - epoch_us(time), CAST(microseconds AS BIGINT));
CREATE MACRO inner_clock(time) AS epoch_us(time) - epoch_us(date_trunc('day', time));
CREATE MACRO inner_end(a, b) AS
    CASE WHEN CAST(b AS DATE) > CAST(a AS DATE) AND inner_clock(b) < inner_clock(a)
         THEN CAST(b AS DATE) - 1
         WHEN CAST(b AS DATE) < CAST(a AS DATE) AND inner_clock(b) > inner_clock(a)
         THEN CAST(b AS DATE) + 1
         ELSE CAST(b AS DATE) END;
CREATE MACRO inner_month_days(day) AS inner_months(day) * 32 + day(day);
CREATE MACRO inner_months_passed(time, other_time, months) AS
    inner_whole(inner_whole(inner_month_days(inner_end(time, other_time))
                            - inner_month_days(CAST(time AS DATE)), 32), months);
CREATE MACRO inner_later(time, n, one) AS time + one * CAST(n AS INTEGER);

CREATE MACRO spark_make_date(y, m, d) AS make_date(y, m, d);
CREATE MACRO spark_make_timestamp(y, mo, d, h, mi, s) AS
    CAST(make_timestamp(y, mo, d, h, mi, CAST(s AS DOUBLE)) AS TIMESTAMPTZ);
CREATE MACRO spark_to_date(day) AS day;
CREATE MACRO spark_to_timestamp(time) AS time;
CREATE MACRO spark_try_to_timestamp(x) AS TRY_CAST(inner_try_time(x) AS TIMESTAMPTZ);
CREATE MACRO inner_seconds(time) AS CAST(floor(epoch_us(time) / 1e6) AS BIGINT);
CREATE MACRO inner_plain(text) AS
    CASE WHEN text IS NULL THEN NULL ELSE coalesce(
        try_strptime(text, '%Y-%m-%d %H:%M:%S'),
        inner_fail('[CANNOT_PARSE_TIMESTAMP] ''' || text || ''' is not of the pattern yyyy-MM-dd HH:mm:ss.')) END;
CREATE MACRO inner_unix(x) AS
    CASE WHEN inner_is_text(x) THEN inner_seconds(CAST(inner_plain(CAST(x AS VARCHAR)) AS TIMESTAMPTZ))
         ELSE inner_seconds(TRY_CAST(CAST(x AS VARCHAR) AS TIMESTAMPTZ)) END;
CREATE MACRO spark_unix_timestamp() AS inner_seconds(now()), (x) AS inner_unix(x);
CREATE MACRO spark_to_unix_timestamp(x) AS inner_unix(x);
CREATE MACRO spark_unix_seconds(time) AS inner_seconds(time);
CREATE MACRO spark_unix_millis(time) AS CAST(floor(epoch_us(time) / 1e3) AS BIGINT);
CREATE MACRO spark_unix_micros(time) AS epoch_us(time);
CREATE MACRO spark_unix_date(day) AS CAST(day - DATE '1970-01-01' AS INTEGER);
CREATE MACRO spark_date_from_unix_date(n) AS DATE '1970-01-01' + CAST(n AS INTEGER);
CREATE MACRO inner_whole_number(x) AS
    CASE WHEN x IS NULL OR typeof(x) IN ('VARCHAR', 'TINYINT', 'SMALLINT', 'INTEGER', 'BIGINT')
         THEN CAST(CAST(x AS INTEGER) AS HUGEINT)
         ELSE inner_fail('make_dt_interval() takes whole days, hours and minutes.') END;
CREATE MACRO inner_micros(days, hours, minutes, seconds) AS
    CAST(days * 86400000000 + hours * 3600000000 + minutes * 60000000
         + CAST(CAST(seconds AS DECIMAL(18, 6)) * 1000000 AS HUGEINT) AS BIGINT);
CREATE MACRO inner_day_time(days, hours, minutes, seconds) AS
    list_transform([inner_micros(inner_whole_number(days), inner_whole_number(hours), inner_whole_number(minutes), seconds)],
        lambda micros: to_days(CAST(micros // 86400000000 AS INTEGER)) + to_microseconds(micros % 86400000000))[1];
CREATE MACRO spark_timestamp_seconds(n) AS inner_at_seconds(n);
CREATE MACRO spark_timestamp_millis(n) AS inner_at_micros(CAST(n AS BIGINT) * 1000);
CREATE MACRO spark_timestamp_micros(n) AS inner_at_micros(CAST(n AS BIGINT));
CREATE MACRO spark_from_unixtime(n) AS
    strftime(to_timestamp(inner_bigint(n)), '%Y-%m-%d %H:%M:%S');
CREATE MACRO spark_from_utc_timestamp(time, zone) AS CAST(timezone(zone, time) AS TIMESTAMPTZ);
CREATE MACRO spark_to_utc_timestamp(time, zone) AS timezone(zone, CAST(time AS TIMESTAMP));
CREATE MACRO spark_current_timezone() AS 'UTC';
CREATE MACRO spark_curdate() AS current_date;
CREATE MACRO spark_current_date() AS current_date;
CREATE MACRO spark_now() AS now();
CREATE MACRO spark_current_timestamp() AS now();
"""
)
