// Lists the limits of the AI gateway that concern the user, and what is used of them. The page reads them again while it
// is seen.
"use strict";

(() => {
  const LIMITS = "/ajax-api/3.0/mlflow-serverless/gateway-limits";
  const NAMES = ["requests_per_minute", "requests_per_day", "tokens_per_minute", "tokens_per_day", "concurrent_calls"];
  const KINDS = { keys: "API key", users: "user", endpoints: "endpoint", workspaces: "workspace" };
  const PAUSE = 10_000;
  const { html, shown, time } = Format;
  const find = (id) => document.getElementById(id);
  const workspace = new URLSearchParams(location.search).get("workspace");

  function cell(amount) {
    if (!amount) return html("td", { class: "number" }, "");
    const { used, limit } = amount;
    const meter = html("meter", { min: "0", max: String(limit), high: String(limit * 0.8), value: String(Math.min(used, limit)) });
    return html("td", { class: "number" }, `${shown(used, "count")} of ${shown(limit, "count")} `, meter);
  }

  const row = (entry) => html("tr", {}, html("td", {}, KINDS[entry.scope]), html("td", {}, entry.name), ...NAMES.map((name) => cell(entry[name])));

  async function show() {
    try {
      const answer = await Asking.call("GET", LIMITS, null, workspace);
      find("list").replaceChildren(...answer.limits.map(row));
      find("none").hidden = answer.limits.length > 0;
      find("ends").textContent = answer.limits.length ? `The day ends at ${time(answer.day_ends_at)}.` : "";
      find("problem").hidden = true;
      document.body.dataset.state = "drawn";
    } catch (error) {
      find("problem").textContent = error.message;
      find("problem").hidden = false;
      document.body.dataset.state = "failed";
    }
  }

  Theme.dress(() => {});
  show();
  setInterval(() => { if (!document.hidden) show(); }, PAUSE);
})();
