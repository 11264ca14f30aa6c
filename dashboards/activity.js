// Lists who did what, newest first, from the audit. The filters are kept in the address. The server
// decides which rows the user may see, and which of their columns.
"use strict";

(() => {
  const ACTIVITY = "/ajax-api/3.0/mlflow-serverless/activity";
  const TEXTS = ["experiment_id", "model", "about_user", "user", "rpc", "outcome"];
  const TIMES = ["since", "until"];
  const { html } = Format;
  const find = (id) => document.getElementById(id);
  const address = new URLSearchParams(location.search);
  const workspace = address.get("workspace");
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const COLUMNS = [
    ["time", (row) => localTime(row.event_time)],
    // A user whose name was erased still has a pseudonym.
    ["user", (row) => row.user_name ?? row.user_id ?? "nobody"],
    ["request", (row) => `${row.method} ${row.rpc}`],
    ["outcome", (row) => `${row.outcome} (${row.http_status})`],
    ["about", (row) => about(row.entity)],
    ["login", (row) => [row.login, row.key_id, row.is_admin ? "administrator" : ""].filter((text) => text).join(", ")],
    ["address", (row) => row.address],
    ["workspace", (row) => row.workspace_id],
  ];
  let token = "";
  let turn = 0; // answers to what was asked before are dropped

  const two = (number) => String(number).padStart(2, "0");

  /** A time as "2026-01-31 13:45:07" in the time zone of the browser. */
  function localTime(milliseconds, toSeconds = true) {
    const at = new Date(milliseconds);
    const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
    const clock = [at.getHours(), at.getMinutes(), ...(toSeconds ? [at.getSeconds()] : [])].map(two).join(":");
    return toSeconds ? `${day} ${clock}` : `${day}T${clock}`;
  }

  const about = (entity) => Object.entries(entity).map(([name, value]) => `${name.replaceAll("_", " ")} ${Array.isArray(value) ? value.join(", ") : value}`).join("; ");

  /** The fields of the request that the address states. */
  function wanted() {
    const texts = TEXTS.filter((name) => address.get(name)).map((name) => [name, address.get(name)]);
    const times = TIMES.filter((name) => address.get(name)).map((name) => [name, Number(address.get(name))]);
    return Object.fromEntries([...texts, ...times]);
  }

  function show(rows) {
    const columns = COLUMNS.filter(([name]) => name !== "login" && name !== "address" && name !== "workspace" || "login" in (rows[0] ?? {}));
    if (rows.length) find("head").replaceChildren(...columns.map(([name]) => html("th", {}, name)));
    find("list").append(...rows.map((row) => html("tr", {}, ...columns.map(([, text]) => html("td", {}, String(text(row) ?? ""))))));
  }

  /** Asks for a page and appends it. Without `next` the list begins anew. */
  async function load({ next = false, fresh = false } = {}) {
    turn += 1;
    const mine = turn;
    find("problem").hidden = true;
    find("none").hidden = true;
    find("more").disabled = true;
    document.body.dataset.state = "waiting";
    try {
      const body = { ...wanted(), ...(next ? { page_token: token } : {}), ...(fresh ? { fresh } : {}) };
      const answer = await Asking.call("POST", ACTIVITY, body, workspace);
      if (mine !== turn) return;
      if (!next) clear();
      show(answer.rows);
      token = answer.next_page_token ?? "";
      find("none").textContent = Object.keys(wanted()).length ? "Nobody did anything of this kind." : "There are no rows yet. A server records who did what if it asks for a login.";
      find("none").hidden = find("list").rows.length > 0;
      document.body.dataset.state = "drawn";
    } catch (error) {
      if (mine !== turn) return;
      if (!next) clear();
      find("problem").textContent = error.status === 403 ? "Administrators see what was done. Who may manage an experiment sees what was done to it: enter its id." : error.message;
      find("problem").hidden = false;
      document.body.dataset.state = "failed";
    }
    find("more").hidden = !token;
    find("more").disabled = false;
    find("moment").textContent = `as of ${localTime(Date.now())}`;
  }

  function clear() {
    token = "";
    find("list").replaceChildren();
    find("head").replaceChildren();
  }

  function change(element) {
    const value = TIMES.includes(element.name) && element.value ? String(new Date(element.value).getTime()) : element.value;
    if (value) address.set(element.name, value);
    else address.delete(element.name);
    const text = address.toString();
    history.replaceState(null, "", text ? `?${text}` : location.pathname);
    load();
  }

  /** Publishes first if the server offers it. Otherwise new rows appear on the publisher's schedule. */
  async function refresh() {
    find("refresh").disabled = true;
    if (!sessionStorage.getItem("scheduled")) {
      await load({ fresh: true });
      if (document.body.dataset.state === "failed") sessionStorage.setItem("scheduled", "true");
    }
    if (sessionStorage.getItem("scheduled")) await load();
    find("refresh").disabled = false;
  }

  for (const element of find("filters").elements) {
    const stated = address.get(element.name) ?? "";
    element.value = stated && TIMES.includes(element.name) ? localTime(Number(stated), false) : stated;
    element.addEventListener("change", () => change(element));
  }
  find("filters").addEventListener("submit", (event) => event.preventDefault());
  find("more").addEventListener("click", () => load({ next: true }));
  find("refresh").addEventListener("click", refresh);
  find("told").textContent = `Times are in the time zone of this browser (${zone}).`;
  Theme.dress(() => {});
  load();
})();
