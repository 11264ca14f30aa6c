// Formats numbers, durations and times for people, and builds elements that hold text.
// Texts from users are only ever set as text of an element.
"use strict";

const Format = (() => {
  const INFINITE = 1e300; // stands for infinity in MLflow's tables
  const digits = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 4 });
  const counts = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
  const dollars = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 });
  const compact = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 3 });
  const LONGEST = 100; // characters of a name that is shown beside others
  const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

  const number = (value) => (value === null || value === undefined || value === "" ? NaN : Number(value));
  const finite = (value) => Number.isFinite(value) && Math.abs(value) < INFINITE;

  function plain(value) {
    const size = Math.abs(value);
    return size !== 0 && (size < 1e-4 || size >= 1e9) ? value.toExponential(3) : digits.format(value);
  }

  /** Formats seconds: 4980 as "1 h 23 min". Below a minute the fraction is kept. */
  function duration(seconds) {
    if (Math.abs(seconds) < 60) return `${digits.format(seconds)} s`;
    const at = UNITS.findIndex(([size]) => Math.abs(seconds) >= size);
    const [[size, name], [smaller, rest]] = [UNITS[at], UNITS[at + 1]];
    const parts = Math.round(seconds / smaller);
    const whole = Math.trunc(parts / (size / smaller));
    const left = Math.abs(parts % (size / smaller));
    return left ? `${counts.format(whole)} ${name} ${left} ${rest}` : `${counts.format(whole)} ${name}`;
  }

  /** Formats US dollars: cents where they matter, three digits of a small amount. */
  function money(value) {
    const size = Math.abs(value);
    const text = size >= 1000 ? counts.format(size) : size >= 1 ? size.toFixed(2) : dollars.format(size);
    return `${value < 0 ? "−" : ""}$${text}`;
  }

  /** Formats a number of a unit: count, ratio, percent, seconds, hours, usd, or any value. */
  function shown(value, unit) {
    if (Number.isNaN(value)) return "NaN";
    if (!finite(value)) return value > 0 ? "∞" : "−∞";
    if (unit === "count") return counts.format(value);
    if (unit === "usd") return money(value);
    if (unit === "ratio") return `${(100 * value).toFixed(value > 0 && value < 0.0995 ? 1 : 0)} %`;
    if (unit === "percent") return `${Math.round(value)} %`;
    if (unit === "seconds") return duration(value);
    if (unit === "hours") return value < 1 ? `${Math.round(60 * value)} min` : `${value < 100 ? value.toFixed(1) : counts.format(value)} h`;
    return plain(value);
  }

  /** By what an axis divides its values, and what it calls them: its ticks are round in that unit. */
  function axisUnit(unit, highest) {
    if (unit === "seconds") {
      const [size, name] = UNITS.find(([one]) => highest >= 2 * one) ?? UNITS.at(-1);
      return { size, name };
    }
    return { size: unit === "ratio" ? 0.01 : 1, name: unit === "percent" || unit === "ratio" ? "%" : unit === "hours" ? "h" : "" };
  }

  /** A tick of an axis, short enough to stand beside it. */
  function tick(value, unit) {
    if (unit === "usd") return money(value);
    return Math.abs(value) >= 10000 && Math.abs(value) < 1e15 ? compact.format(value) : plain(value);
  }

  /** A text of users with its marks of direction shown, so that none reads as another name. */
  const visible = (text) => text.replace(/[\u202A-\u202E\u2066-\u2069]/g, "\uFFFD");

  /** The begin of a long name. */
  function short(name, most = LONGEST) {
    const letters = [...name.slice(0, 2 * most + 2)];
    return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : name;
  }

  /** An instant of an answer, or a bucket on the clock of a time zone, in milliseconds. */
  const moment = (value) => (typeof value === "number" ? value : Date.parse(/^\d{4}-\d\d-\d\d \d\d:\d\d$/.test(value) ? `${value.replace(" ", "T")}:00Z` : value));

  /** A time of an answer as "2026-01-31 13:45"; at midnight the day alone where days are meant. */
  function time(value, grain = "minute") {
    const at = moment(value);
    if (Number.isNaN(at)) return String(value ?? "");
    const text = new Date(at).toISOString();
    const year = text.indexOf("-", 1); // years beyond 9999 have a sign and six digits
    if (grain === "month") return text.slice(0, year + 3);
    if (grain === "day" || grain === "week") return text.slice(0, year + 6);
    return text.slice(0, year + 12).replace("T", " ");
  }

  function html(name, attributes = {}, ...content) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...content.filter((one) => one !== null));
    return element;
  }

  return { number, finite, shown, plain, axisUnit, tick, visible, short, moment, time, html };
})();
