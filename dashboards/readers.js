// Lists the readers of the system tables, and grants or revokes access. The server decides who may
// do that.
"use strict";

(() => {
  const READERS = "/ajax-api/3.0/mlflow-serverless/system-tables/readers";
  const ALL = "*";
  const { html } = Format;
  const find = (id) => document.getElementById(id);

  async function show() {
    const { readers, workspaces } = await Asking.call("GET", READERS);
    const chosen = new Set([...document.querySelectorAll("#workspaces input:checked")].map((one) => one.value));
    find("workspaces").replaceChildren(...[ALL, ...workspaces].map((name) => choice(name, chosen)));
    find("list").replaceChildren(...readers.map(row));
    find("none").hidden = readers.length > 0;
  }

  function choice(name, chosen) {
    const box = html("input", { type: "checkbox", value: name });
    box.checked = chosen.has(name);
    box.disabled = name !== ALL && chosen.has(ALL);
    // With all workspaces chosen, the single ones are disabled.
    if (name === ALL) box.addEventListener("change", () => {
      for (const one of document.querySelectorAll("#workspaces input")) if (one !== box) one.disabled = box.checked;
    });
    return html("label", {}, box, name === ALL ? "all workspaces" : name);
  }

  function row({ username, workspaces }) {
    const remove = html("button", { type: "button" }, "Take away");
    remove.addEventListener("click", () => change("DELETE", { username }));
    const names = workspaces.includes(ALL) ? "all" : workspaces.join(", ");
    return html("tr", {}, html("td", {}, username), html("td", {}, names), html("td", { class: "number" }, remove));
  }

  async function change(method, body) {
    find("problem").hidden = true;
    document.body.dataset.state = "waiting";
    try {
      if (method) await Asking.call(method, READERS, body);
      await show();
      document.body.dataset.state = "drawn";
    } catch (error) {
      find("problem").textContent = error.status === 403 ? "Only administrators may see and grant readers." : error.message;
      find("problem").hidden = false;
      document.body.dataset.state = "failed";
    }
  }

  find("grant").addEventListener("submit", async (event) => {
    event.preventDefault();
    const checked = [...document.querySelectorAll("#workspaces input:checked")].map((one) => one.value);
    await change("PUT", { username: find("username").value, workspaces: checked.includes(ALL) ? [ALL] : checked });
    if (document.body.dataset.state === "drawn") find("username").value = "";
  });
  Theme.dress(() => {});
  change();
})();
