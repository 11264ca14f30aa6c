// Calls the API: runs SQL queries on the system tables, a few at a time.
"use strict";

const Asking = (() => {
  const SQL = "/ajax-api/3.0/mlflow-serverless/sql";
  const TOGETHER = 2;
  const TRIES = 30; // of a query that the server is too busy for

  const waiting = [];
  let busy = 0;

  const rest = (seconds) => new Promise((go) => { setTimeout(go, 1000 * seconds); });

  /**
   * Calls the API and returns its JSON. Throws an Error with the server's message, status and code. Repeats no call
   * that is not wanted any more.
   */
  async function call(method, path, body, workspace, isWanted = () => true) {
    const headers = { ...(body ? { "Content-Type": "application/json" } : {}), ...(workspace ? { "X-MLFLOW-WORKSPACE": workspace } : {}) };
    for (let tried = 1; ; tried += 1) {
      const reply = await fetch(path, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
      const text = await reply.text();
      if (reply.ok) return JSON.parse(text);
      if (reply.status === 429 && tried < TRIES && isWanted()) {
        await rest(Math.min(5, Number(reply.headers.get("Retry-After")) || 0.5));
        continue;
      }
      let [said, code] = [text, ""];
      try {
        const error = JSON.parse(text);
        [said, code] = [error.message ?? text, error.error_code ?? ""];
      } catch { /* no JSON: the text itself */ }
      throw Object.assign(new Error(said || `The server answered ${reply.status}.`), { status: reply.status, code });
    }
  }

  /**
   * Runs a query. At most TOGETHER queries run at the same time; others wait. A query that is not wanted any more when
   * it has waited is not sent: its Error has `dropped`.
   */
  async function query(body, workspace, isWanted = () => true) {
    while (busy >= TOGETHER && isWanted()) await new Promise((go) => { waiting.push(go); });
    if (!isWanted()) {
      waiting.shift()?.();
      throw Object.assign(new Error("The answer is not wanted any more."), { dropped: true });
    }
    busy += 1;
    try {
      return await call("POST", SQL, body, workspace, isWanted);
    } catch (error) {
      if (error.status === 403) throw Object.assign(new Error("You may not read the system tables. An administrator can grant that at /dashboards/readers."), { status: 403 });
      throw error;
    } finally {
      busy -= 1;
      waiting.shift()?.();
    }
  }

  /**
   * Joins the lines of a chart to one statement, with the filters and with times truncated to the grain. In another
   * zone than UTC a truncated time is the text that a clock there shows.
   */
  function statement(lines, filter, grain, zone) {
    const unit = `'${grain.toUpperCase()}'`;
    const there = zone && zone !== Zone.UTC;
    const bucket = (column) => (there ? `DATE_FORMAT(DATE_TRUNC(${unit}, FROM_UTC_TIMESTAMP(${column}, :zone)), 'yyyy-MM-dd HH:mm')` : `DATE_TRUNC(${unit}, ${column})`);
    return lines.join("\n")
      .replace(/\{filter ([a-z]+)\}/g, (_, name) => filter[name].join("\n"))
      .replace(/\{bucket ([a-z._]+)\}/g, (_, column) => bucket(column));
  }

  /** The values of the parameters that a statement uses. */
  function parameters(sql, values) {
    return Object.fromEntries(Object.entries(values).filter(([name]) => new RegExp(`:${name}\\b`).test(sql)));
  }

  const literal = (value) => `'${value.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;

  /** The statement with its values as literals, to be run elsewhere. */
  const complete = (sql, values) => sql.replace(/:([a-z]+)\b/g, (text, name) => (name in values ? literal(values[name]) : text));

  return { call, query, statement, parameters, complete };
})();
