// Chooses the range of time that is shown: a preset, chosen days, or all; and finds outlying runs.
"use strict";

const Window = (() => {
  const DAY = 86400000;
  const PRESETS = { "24h": 1, "7d": 7, "30d": 30, "90d": 90 };
  const USUAL = "90d";
  const BEGINNING = "0001-01-01";
  const END = "9999-12-31";
  const FIRST = Date.UTC(2018, 0, 1); // MLflow's first year: earlier times are not plausible
  const APART = 400 * DAY;
  const SHARE = 0.05;
  const MOST = 130; // buckets on an axis

  const floor = (at, length) => Math.floor(at / length) * length;

  /** The begin of the bucket of a time, or of the next bucket. Weeks begin on Mondays. */
  function bucket(at, grain, next = 0) {
    if (grain === "week") return floor(at - 4 * DAY, 7 * DAY) + 4 * DAY + 7 * DAY * next;
    if (grain !== "month") return floor(at, grain === "hour" ? DAY / 24 : DAY) + (grain === "hour" ? DAY / 24 : DAY) * next;
    const month = new Date(at);
    return Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + next, 1);
  }

  /** The ends of a time axis, which shows whole buckets. */
  function axes(from, to, given) {
    const name = given ?? grain(from, to);
    return { from: bucket(from, name), to: bucket(to - 1, name, 1), grain: name };
  }
  const text = (at, zone) => new Date(Zone.instant(at, zone)).toISOString().slice(0, 19).replace("T", " ");
  const day = (value) => {
    const at = Date.parse(`${value}T00:00:00Z`);
    return Number.isNaN(at) ? null : at;
  };

  /**
   * Groups adjacent months, each group {from, to, runs}. Groups with few runs far from the others, before
   * MLflow existed or in the future, are returned as "apart".
   */
  function groups(answer, now, zone) {
    const at = Tables.places(answer);
    const found = [];
    for (const row of answer.rows) {
      const [from, to, runs] = [...[at.oldest, at.newest].map((place) => Zone.wall(Date.parse(row[place]), zone)), Number(row[at.runs])];
      const last = found.at(-1);
      const plausible = from >= FIRST && from <= now + DAY;
      if (last && from - last.to <= APART && last.plausible === plausible) {
        last.to = to;
        last.runs += runs;
      } else found.push({ from, to, runs, plausible });
    }
    const total = found.reduce((sum, one) => sum + one.runs, 0);
    const kept = found.filter((one) => one.plausible && one.runs >= SHARE * total);
    return { total, kept: kept.length ? kept : found, apart: kept.length ? found.filter((one) => !kept.includes(one)) : [] };
  }

  /** The grain for a range: hours up to 3 days, days and weeks up to MOST buckets, else months. */
  function grain(from, to) {
    const days = (to - from) / DAY;
    if (days <= 3) return "hour";
    return days <= MOST ? "day" : days <= 7 * MOST ? "week" : "month";
  }

  /**
   * The range of time: since and until for SQL in UTC, from and to for the axes on the clock of the chosen zone.
   * Default: the last 90 days, or those up to the newest row if it is older. A report passes the grain of its
   * results.
   */
  function of(chosen, answer, instant, given) {
    const zone = chosen.zone;
    const now = Zone.wall(instant, zone);
    const { total, kept, apart } = groups(answer, now, zone);
    const newest = kept.length ? kept.at(-1).to : now;
    const oldest = kept.length ? kept[0].from : now - PRESETS[USUAL] * DAY;
    const known = { total, apart, name: chosen.window || USUAL };
    const [since, until] = [day(chosen.since), day(chosen.until)];
    if (since !== null || until !== null) {
      const from = since ?? Math.min(floor(oldest, DAY), until);
      const to = until === null ? Math.max(floor(newest, DAY) + DAY, from + DAY) : until + DAY;
      const bounds = { since: since === null ? BEGINNING : text(since, zone), until: until === null ? END : text(until + DAY, zone) };
      return { ...known, name: "days", ...bounds, ...axes(from, to, given) };
    }
    if (known.name === "all" || !(known.name in PRESETS)) {
      const [from, to] = [floor(oldest, DAY), floor(newest, DAY) + DAY];
      return { ...known, name: "all", since: BEGINNING, until: END, ...axes(from, to, given) };
    }
    const days = PRESETS[known.name];
    // Nothing was chosen and all runs are older: show the days up to the newest run.
    const end = !chosen.window && newest < now - days * DAY ? newest + 1 : now;
    const unit = days <= 3 ? DAY / 24 : DAY;
    const to = floor(end, unit) + unit;
    const from = to - days * DAY;
    return { ...known, since: text(from, zone), until: text(to, zone), ...axes(from, to, given) };
  }

  /**
   * From when on rows matter for the choice: of a preset its days, else all. So a query about which times there are
   * does not read the files of all months.
   */
  function horizon(chosen, instant) {
    const days = PRESETS[chosen.window || USUAL];
    return chosen.since || chosen.until || !days ? BEGINNING : text(floor(instant, DAY) - days * DAY);
  }

  return { of, horizon, PRESETS, USUAL, BEGINNING, END };
})();
