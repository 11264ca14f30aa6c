// Converts between instants and the wall clock of a time zone. A wall-clock time is kept as the number of
// milliseconds that it would have in UTC, so that all axes and buckets compute in UTC.
"use strict";

const Zone = (() => {
  const UTC = "UTC";
  const clocks = new Map();

  /** The name if the browser knows this zone, else UTC. */
  function known(name) {
    try {
      return name && clock(name) ? name : UTC;
    } catch {
      return UTC;
    }
  }

  /** The zone of the browser. */
  const own = () => known(Intl.DateTimeFormat().resolvedOptions().timeZone);

  function clock(name) {
    const part = "2-digit";
    if (!clocks.has(name)) clocks.set(name, new Intl.DateTimeFormat("en-US", { timeZone: name, hourCycle: "h23", era: "short", year: "numeric", month: part, day: part, hour: part, minute: part, second: part }));
    return clocks.get(name);
  }

  /** What the clock of the zone shows at an instant. */
  function wall(at, zone) {
    if (!zone || zone === UTC || !Number.isFinite(at)) return at;
    const parts = Object.fromEntries(clock(zone).formatToParts(at).map(({ type, value }) => [type, value]));
    const shown = new Date(0);
    shown.setUTCFullYear(parts.era === "BC" ? 1 - Number(parts.year) : Number(parts.year), Number(parts.month) - 1, Number(parts.day));
    shown.setUTCHours(Number(parts.hour), Number(parts.minute), Number(parts.second));
    return shown.getTime() + (((at % 1000) + 1000) % 1000);
  }

  /** The instant at which the clock of the zone shows a time. A time that the clock leaves out is one hour later. */
  function instant(time, zone) {
    if (!zone || zone === UTC) return time;
    const guess = time - (wall(time, zone) - time);
    const mended = guess + (time - wall(guess, zone));
    return wall(mended, zone) === time ? mended : Math.max(guess, mended);
  }

  return { UTC, known, own, wall, instant };
})();
