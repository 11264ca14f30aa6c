// Lists the API keys of the user; creates, rotates and revokes them. The server decides what the
// user may do. A token is only ever text of this page: it is in no address and in no storage.
"use strict";

(() => {
  const KEYS = "/ajax-api/3.0/mlflow-serverless/keys";
  const NO_LOGIN = "ENDPOINT_NOT_FOUND";
  const DAY = 86400;
  const { html, time } = Format;
  const find = (id) => document.getElementById(id);
  const workspace = new URLSearchParams(location.search).get("workspace");
  let shownKey = null; // the id of the key whose token is shown

  function row(key) {
    const rotate = html("button", { type: "button" }, "Rotate");
    rotate.addEventListener("click", () => change("POST", `${KEYS}/rotate`, { key_id: key.key_id }));
    const revoke = html("button", { type: "button" }, "Revoke");
    revoke.addEventListener("click", async () => {
      if (!confirm(`Revoke the key "${key.name}"? Programs that use it are refused at once.`)) return;
      if (await change("DELETE", KEYS, { key_id: key.key_id }) && shownKey === key.key_id) hideToken();
    });
    const texts = [
      key.name,
      key.scopes === null ? "all of your rights" : key.scopes.join(", "),
      key.workspace,
      time(key.created_at),
      key.expires_at === null ? "never" : time(key.expires_at),
      key.last_used_at === null ? "never" : time(key.last_used_at, "day"),
    ];
    return html("tr", {}, ...texts.map((text) => html("td", {}, text)), html("td", { class: "number" }, rotate, " ", revoke));
  }

  function showToken({ key, token }, rotated) {
    shownKey = key.key_id;
    const old = rotated ? " The old key ends within a day." : "";
    find("about").textContent = `The token of the key "${key.name}" is shown only now.${old}`;
    find("token").textContent = token;
    find("copied").textContent = "";
    find("made").hidden = false;
  }

  function hideToken() {
    shownKey = null;
    find("token").textContent = "";
    find("made").hidden = true;
  }

  function disable(disabled) {
    for (const one of document.querySelectorAll("fieldset, #list button")) one.disabled = disabled;
  }

  async function list() {
    const { keys } = await Asking.call("GET", KEYS, null, workspace);
    find("list").replaceChildren(...keys.map(row));
    find("none").hidden = keys.length > 0;
  }

  /** Sends a change, if there is one, and lists the keys again, also after a failure: a key whose
   * token was lost on its way is seen there. Returns whether the change was made. */
  async function change(method, path, body) {
    let said = "";
    let hasLogin = true;
    document.body.dataset.state = "waiting";
    find("problem").hidden = true;
    disable(true);
    try {
      const answer = method ? await Asking.call(method, path, body, workspace) : {};
      if (answer.token) showToken(answer, path !== KEYS);
    } catch (error) {
      said = error.message;
    }
    const done = !said;
    try {
      await list();
    } catch (error) {
      hasLogin = error.code !== NO_LOGIN;
      said = hasLogin ? said || error.message : "API keys need a login, and this server asks for none.";
    }
    disable(!hasLogin);
    find("problem").textContent = said;
    find("problem").hidden = !said;
    document.body.dataset.state = said ? "failed" : "drawn";
    return done;
  }

  find("create").addEventListener("submit", async (event) => {
    event.preventDefault();
    const [scopes, days] = [find("scopes").value, find("expiry").value];
    const body = {
      name: find("name").value,
      // Lines without a scope are refused by the server; only an empty field means all rights.
      ...(scopes ? { scopes: scopes.split("\n").filter((line) => line) } : {}),
      ...(days ? { expires_in_seconds: DAY * Number(days) } : {}),
    };
    if (await change("POST", KEYS, body)) find("create").reset();
  });
  find("copy").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(find("token").textContent);
      find("copied").textContent = "Copied.";
    } catch { // browsers have no clipboard for pages by HTTP of other machines
      getSelection().selectAllChildren(find("token"));
      find("copied").textContent = "Selected: copy it with the keyboard.";
    }
  });
  // A browser may keep the page that is left, and show it again.
  addEventListener("pagehide", hideToken);
  Theme.dress(() => {});
  change();
})();
