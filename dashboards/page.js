// The dashboards page: reads the filters, runs the queries of a board and draws its cards. Board and filters are
// kept in the address, so that a user can share them as a link.
"use strict";

(() => {
  const CHOSEN = ["experiment", "user", "zone", "window", "since", "until", "metric", "order", "run", "minutes", "sessions", "version"];
  const OF_TIME = ["window", "since", "until"];
  const BOARDS = [["runs", "Runs"], ["usage", "Usage"], ["agents", "Agents"], ["quality", "Quality"], ["costs", "AWS cost"]];
  const NO_TIMES = { columns: ["month", "runs", "oldest", "newest"], types: [], rows: [] };
  const { html, shown, number, time } = Format;

  const find = (id) => document.getElementById(id);
  const embedded = find("report");
  const report = embedded ? JSON.parse(embedded.textContent) : null;
  const address = new URLSearchParams(report ? "" : location.search);
  const chosen = { order: "lowest", minutes: "60", sessions: "turns", version: "model", ...Object.fromEntries(CHOSEN.filter((name) => address.has(name)).map((name) => [name, address.get(name)])), ...report?.chosen };
  chosen.zone = Zone.known(chosen.zone);
  const site = { server: report?.server ?? "", workspaces: Boolean(report) && inWorkspaces(report.answers), zone: chosen.zone };
  const cards = new Map();
  const books = new Map(); // by the name of their board
  const resized = new ResizeObserver((entries) => requestAnimationFrame(() => {
    for (const { target } of entries) {
      const card = cards.get(target.parentElement?.id);
      if (span && card) Cards.draw(card, span, site);
    }
  }));
  let board = null;
  let book = null;
  let span = null;
  let horizon = Window.BEGINNING;
  let turn = 0; // queries and answers of earlier turns are dropped
  const pending = new Set(); // changes of which not all answers are drawn; undefined stands for a change of everything

  /** Whether rows of a report are of other workspaces than the default one. */
  function inWorkspaces(answers) {
    return Object.values(answers).some((answer) => {
      const at = Tables.places(answer).workspace_id;
      return at !== undefined && answer.rows.some((row) => row[at] !== "default");
    });
  }

  const moment = () => (report ? Date.parse(`${report.made.replace(" ", "T")}Z`) : Date.now());

  function values() {
    return {
      experiment: chosen.experiment ?? "", user: chosen.user ?? "",
      since: span?.since ?? Window.BEGINNING, until: span?.until ?? Window.END,
      metric: chosen.metric ?? "", order: chosen.order, run: chosen.run ?? "", minutes: chosen.minutes,
      sessions: chosen.sessions, version: chosen.version, zone: chosen.zone, horizon,
    };
  }

  const statement = (lines) => Asking.statement(lines, book.filter, span?.grain ?? "day", chosen.zone);

  async function ask(name, lines, mine) {
    if (report) return report.answers[name];
    const sql = statement(lines);
    return Asking.query({ sql, parameters: Asking.parameters(sql, values()) }, address.get("workspace"), () => mine === turn);
  }

  // ------------------------------------------------------------------ queries

  /** Whether the answer of a statement depends on what was changed. */
  function depends(lines, changed) {
    const names = OF_TIME.includes(changed) ? "(since|until|horizon)" : changed;
    return !changed || new RegExp(`:${names}\\b`).test(statement(lines));
  }

  /** Runs the queries that a change affects, or all queries without a particular change; also those of earlier changes that are pending. */
  async function load(changed) {
    turn += 1;
    const mine = turn;
    pending.add(changed);
    const changes = [...pending];
    const touched = (lines) => changes.some((each) => depends(lines, each));
    const waits = [...cards.values()].filter((card) => touched(card.chart.sql));
    waits.forEach((card) => card.drawing.classList.add("waiting"));
    if (touched(book.choices.span) || changes.some((each) => OF_TIME.includes(each))) {
      const answer = await times(mine);
      if (mine !== turn) return;
      span = Window.of(chosen, answer, moment(), report?.grain);
    }
    if (touched(book.choices.filters)) await choices(mine);
    if (mine !== turn) return;
    if (book.choices.runs && touched(book.choices.runs)) {
      const before = chosen.run;
      await runs(mine);
      if (mine !== turn) return;
      if (chosen.run !== before) waits.push(...[...cards.values()].filter((card) => !waits.includes(card) && /:run\b/.test(statement(card.chart.sql))));
    }
    await Promise.all([...(touched(book.choices.totals) ? [totals(mine)] : []), ...waits.map((card) => answered(card, mine))]);
    if (mine !== turn) return;
    pending.clear();
    document.body.dataset.state = "drawn";
  }

  /** Asks in which months there are rows: of the times that matter for the choice, and of all times if there are none. */
  async function times(mine) {
    const lines = book.choices.span;
    const bounded = lines.some((line) => line.includes(":horizon"));
    horizon = bounded && !report ? Window.horizon(chosen, moment()) : Window.BEGINNING;
    try {
      const answer = await ask("span", lines, mine);
      if (!bounded || answer.rows.length || horizon === Window.BEGINNING) return answer;
      horizon = Window.BEGINNING;
      return await ask("span", lines, mine);
    } catch (error) {
      if (error.status === 403) throw error; // then all others are refused, too
      if (mine === turn) showProblem(error.message);
      return NO_TIMES;
    }
  }

  /** Says above the charts what went wrong. */
  function showProblem(text) {
    find("problem").textContent = text;
    find("problem").hidden = !text;
  }

  async function answered(card, mine) {
    card.drawing.classList.add("waiting");
    const sql = Asking.complete(statement(card.chart.sql), values());
    try {
      const answer = await ask(card.chart.name, card.chart.sql, mine);
      if (mine !== turn) return;
      Cards.show(card, sql, answer);
      Cards.draw(card, span, site);
    } catch (error) {
      if (mine === turn) Cards.show(card, sql, null, error);
    }
  }

  async function choices(mine) {
    let answer = null;
    try {
      answer = await ask("filters", book.choices.filters, mine);
    } catch (error) {
      if (error.status === 403) throw error;
      if (mine === turn) showProblem(error.message);
      answer = { rows: [] };
    }
    if (mine !== turn) return;
    const of = (kind) => answer.rows.filter((row) => row[0] === kind).map((row) => [row[1], row[2]]);
    Cards.fill(find("experiment"), of("experiment"), chosen.experiment, true);
    Cards.fill(find("user"), of("user"), chosen.user, true);
    const metrics = of("metric");
    chosen.metric ??= metrics[0]?.[0];
    for (const element of document.querySelectorAll("select[name=metric]")) Cards.fill(element, metrics, chosen.metric);
  }

  /** Lists the runs that have the metric. Selects the newest unless the chosen run is among them. */
  async function runs(mine) {
    const answer = await ask("runs", book.choices.runs, mine);
    if (mine !== turn) return;
    const at = Tables.places(answer);
    const options = answer.rows.map((row) => [row[at.value], row[at.label]]);
    if (!report && !address.has("run") && !options.some(([id]) => id === chosen.run)) chosen.run = options[0]?.[0];
    for (const element of document.querySelectorAll("select[name=run]")) Cards.fill(element, options, chosen.run);
    const row = answer.rows.find((listed) => listed[at.value] === chosen.run);
    const link = row && html("a", { href: Tables.address(site, "run", row[at.experiment_id], row[at.value], row[at.workspace_id]), class: "open" }, "Open in MLflow");
    document.querySelectorAll(".open").forEach((element) => element.remove());
    if (link) document.querySelector("select[name=run]")?.closest(".settings").append(link);
  }

  // ------------------------------------------------------------------ above the charts

  async function totals(mine) {
    let answer = null;
    try {
      answer = await ask("totals", book.choices.totals, mine);
    } catch (error) {
      if (mine === turn) find("totals").replaceChildren(html("div", { role: "alert" }, error.message));
    }
    if (mine !== turn) return;
    if (answer) {
      const at = Tables.places(answer);
      find("totals").replaceChildren(...book.choices.tiles.map((tile) => tileOf(tile, (name) => answer.rows[0]?.[at[name]])));
    }
    showRange(answer && book.total ? number(answer.rows[0]?.[Tables.places(answer)[book.total]] ?? 0) : span.total);
  }

  /** A number above the charts; of a part of others also its share. */
  function tileOf({ title, column, unit, of }, value) {
    const amount = value(column);
    const [part, total] = [number(amount ?? 0), number(value(of) ?? 0)];
    const text = of ? (total ? shown(part / total, "ratio") : "–") : amount === null || amount === undefined ? "–" : shown(number(amount), unit);
    const more = of ? `${shown(part, "count")} of ${shown(total, "count")}${of === "ended" ? " ended" : ""}` : "";
    return html("div", {}, html("dt", {}, title), html("dd", {}, text), more ? html("dd", { class: "faint" }, more) : null);
  }

  /** Shows the range of time and the outlying rows. */
  function showRange(count) {
    const day = (at) => time(at, "day");
    const shownTime = span.grain === "hour" ? [time(span.from), time(span.to)] : [day(span.from), day(span.to - 1)];
    const parts = [`${shownTime.join(" to ")} (${chosen.zone}), a point for each ${span.grain}.`];
    const apart = span.apart.reduce((sum, bucket) => sum + bucket.runs, 0);
    const times = span.apart.flatMap(({ from, to }) => (day(from) === day(to) ? [day(from)] : [`${day(from)} to ${day(to)}`])).join(", ");
    const isSingle = apart === 1;
    const [single, many, before] = book.counted;
    if (apart && span.name === "all") parts.push(`${isSingle ? `1 ${single}` : `${apart} ${many}`} far from all others (${times}): the charts over time leave ${isSingle ? "it" : "them"} out, all else counts ${isSingle ? "it" : "them"}.`);
    else if (count < span.total) parts.push(`${shown(count, "count")} of ${shown(span.total, "count")} ${before} then${apart ? `; ${apart} of the others far from all others (${times})` : ""}.`);
    find("told").textContent = parts.join(" ");
    for (const element of document.querySelectorAll("#presets button")) element.setAttribute("aria-pressed", String(element.value === span.name));
  }

  function change(name, value) {
    if (name === "window") ["since", "until"].forEach((bound) => set(bound, ""));
    if (name === "since" || name === "until") set("window", "");
    if (name !== "run") address.delete("run");
    set(name, value);
    const text = address.toString();
    history.replaceState(null, "", `${text ? `?${text}` : location.pathname}${location.hash}`);
    if (name === "zone") site.zone = Zone.known(value);
    begin(name === "zone" ? undefined : name);
  }

  function set(name, value) {
    chosen[name] = value;
    if (value && !(name === "zone" && value === Zone.UTC)) address.set(name, value);
    else address.delete(name);
    for (const element of document.querySelectorAll(`[name=${name}]`)) element.value = value;
  }

  async function begin(changed) {
    document.body.dataset.state = "waiting";
    showProblem("");
    try {
      await load(changed);
    } catch (error) {
      if (error.dropped) return; // a later change asks again
      for (const card of cards.values()) card.drawing.classList.remove("waiting");
      showProblem(error.message);
      document.body.dataset.state = "failed";
    }
    find("moment").textContent = `as of ${report ? report.made : new Date(Zone.wall(Date.now(), chosen.zone)).toISOString().slice(0, 19).replace("T", " ")} ${chosen.zone}`;
  }

  /** Publishes first if the server offers it. Otherwise new rows appear on the publisher's schedule. */
  async function refresh() {
    find("refresh").disabled = true;
    try {
      if (!sessionStorage.getItem("scheduled")) await Asking.query({ sql: "SELECT 1", fresh: true }, address.get("workspace"));
    } catch {
      sessionStorage.setItem("scheduled", "true");
    }
    await begin();
    find("refresh").disabled = false;
  }

  function redraw() {
    if (span) cards.forEach((card) => Cards.draw(card, span, site));
  }

  // ------------------------------------------------------------------ boards

  /** The board that the address names. */
  const named = () => BOARDS.find(([name]) => `#${name}` === location.hash)?.[0] ?? "runs";

  async function bookOf(name) {
    if (!books.has(name)) books.set(name, await (await fetch(`/static-files/dashboards/boards/${name}.json`)).json());
    return books.get(name);
  }

  /** Shows the cards of a board in place of those before. */
  async function open(name) {
    board = name;
    turn += 1;
    document.body.dataset.state = "waiting";
    document.body.dataset.board = name;
    for (const link of find("boards").children) link.toggleAttribute("aria-current", false);
    find("boards").querySelector(`[href="#${name}"]`)?.setAttribute("aria-current", "page");
    const content = report ? report.book : await bookOf(name);
    if (board !== name) return; // another one was opened meanwhile
    resized.disconnect();
    for (const card of cards.values()) Charts.clear(card.drawing);
    cards.clear();
    [book, span] = [content, null];
    find("title").textContent = book.title;
    for (const chart of book.charts) {
      const card = Cards.make(chart, chosen, Boolean(report), change);
      cards.set(chart.name, card);
      if (chart.draw !== "list") resized.observe(card.drawing);
    }
    find("charts").replaceChildren(...[...cards.values()].map((card) => card.section));
    find("totals").replaceChildren();
    for (const chooser of ["experiment", "user"]) find(chooser).parentElement.hidden = !book.choosers.includes(chooser);
    await begin();
  }

  /** Offers UTC, the browser's zone and the one of the address. */
  function zones() {
    const names = [...new Set([Zone.UTC, Zone.own(), chosen.zone])];
    find("zone").replaceChildren(...names.map((name) => new Option(name === Zone.own() && name !== Zone.UTC ? `${name} (here)` : name, name)));
  }

  async function main() {
    Theme.dress(redraw);
    zones();
    for (const name of ["experiment", "user", "since", "until", "zone"]) {
      const element = find(name);
      element.value = chosen[name] ?? "";
      element.disabled = Boolean(report);
      element.addEventListener("change", () => change(name, element.value));
    }
    for (const element of document.querySelectorAll("#presets button")) {
      element.disabled = Boolean(report);
      element.addEventListener("click", () => change("window", element.value));
    }
    find("filters").addEventListener("submit", (event) => event.preventDefault());
    find("refresh").addEventListener("click", refresh);
    find("refresh").hidden = find("boards").hidden = Boolean(report);
    if (!report) {
      find("boards").replaceChildren(...BOARDS.map(([name, title]) => html("a", { href: `#${name}` }, title)));
      addEventListener("hashchange", () => open(named()));
      site.workspaces = await Asking.call("GET", "/ajax-api/3.0/mlflow/server-info").then((info) => info.workspaces_enabled, () => false);
    }
    await open(named());
  }

  main();
})();
