"use strict";
// The console's page. All that comes from the cluster becomes text nodes; nothing is ever read as markup.

const page = document.getElementById("page");
const said = document.getElementById("said");
let leaving = new AbortController(); // ends what the page before still waits for

const token = (() => {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) { sessionStorage.setItem("token", given); history.replaceState(null, "", "/#/overview"); }
  return sessionStorage.getItem("token");
})();

function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(key, value);
  }
  made.append(...children.flat().map((child) => (child instanceof Node ? child : String(child ?? "–"))));
  return made;
}

function table(headings, rows) {
  const head = el("tr", {}, headings.map((text) => el("th", { scope: "col" }, text)));
  const body = rows.map((cells) => el("tr", {}, cells.map((cell) => el("td", {}, cell))));
  return el("div", { class: "wide" }, el("table", {}, el("thead", {}, head), el("tbody", {}, body)));
}

const link = (text, ...parts) => el("a", { href: "#/" + parts.map(encodeURIComponent).join("/") }, text);
const say = (text, bad = false) => { said.textContent = text; said.className = bad ? "bad" : ""; };
const showError = (error) => { if (error.name !== "AbortError") say(error.message, true); }; // an aborted request means that the user left the page
const field = (label, name, attributes = {}) => el("label", {}, label, el("input", { name, ...attributes }));
const choice = (label, name, options) => el("label", {}, label, el("select", { name }, options.map((o) => el("option", { value: o }, o))));
const figure = (number, text, bad = false) => el("li", { class: bad ? "bad" : null }, el("b", {}, number), text);
const counted = (number, one) => figure(number, number === 1 ? one : one + "s");
const when = (ms) => (ms < 0 ? "–" : new Date(ms).toISOString().replace("T", " ").replace("Z", ""));

async function request(path, options = {}) {
  const headers = { ...options.headers };
  if (token) headers.Authorization = "Bearer " + token;
  let answer;
  try {
    answer = await fetch("/api/" + path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("the console does not answer: check that `ottla console` is running");
  }
  if (!answer.ok) {
    const body = await answer.json().catch(() => ({}));
    throw new Error(body.error || "the console responded with status " + answer.status);
  }
  return answer;
}

const ask = async (path, given = {}) =>
  (await request(path + "?" + new URLSearchParams(given), { signal: leaving.signal })).json();
const order = async (path, given) =>
  (await request(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(given) })).json();

function form(button, fields, act, destroys = false) {
  return el("form", {
    onsubmit: async (event) => {
      event.preventDefault();
      const given = Object.fromEntries(new FormData(event.target));
      say("…");
      try { say((await act(given)) || ""); } catch (error) { showError(error); }
    },
  }, fields, el("button", { class: destroys ? "destroys" : null }, button));
}

async function overview() {
  const seen = await ask("overview");
  const lacking = [...seen.without_leader.map((p) => p + " (no leader)"), ...seen.under_replicated];
  const groups = Object.values(seen.groups).reduce((sum, count) => sum + count, 0);
  return [
    el("h1", {}, "Overview"),
    el("ul", { class: "figures" },
      counted(seen.brokers.length, "broker"), counted(seen.topics, "topic"), counted(seen.partitions, "partition"), counted(groups, "group"),
      figure(new Set(seen.away.map((a) => a.node_id)).size, "away", seen.away.length > 0),
      figure(seen.under_replicated.length, "under-replicated", seen.under_replicated.length > 0),
      figure(seen.without_leader.length, "without leader", seen.without_leader.length > 0)),
    seen.away.length ? el("h2", {}, "Offline nodes") : "",
    seen.away.length ? table(["role", "id", "address", "since (UTC)"], seen.away.map((a) => [a.role, a.node_id, a.address, a.since_ms === null ? null : when(a.since_ms)])) : "",
    el("h2", {}, "Brokers"),
    table(["id", "address", "rack", "partitions led"], seen.brokers.map((b) => [b.id, b.address, b.rack, b.leads])),
    lacking.length ? el("h2", {}, "Under-replicated partitions") : "",
    lacking.length ? el("p", {}, lacking.slice(0, 200).join(", ")) : "",
    el("h2", {}, "Groups by state"),
    table(["state", "groups"], Object.entries(seen.groups)),
  ];
}

async function topics(text = "", from = "0") {
  const seen = await ask("topics", { text, from });
  const next = seen.from + seen.topics.length;
  return [
    el("h1", {}, "Topics"),
    form("Find", [field("name contains", "text", { value: text })], (given) => { location.hash = "#/topics/" + encodeURIComponent(given.text); }),
    el("p", { class: "dim" }, seen.count ? `${seen.from + 1} to ${next} of ${seen.count} ` : "no topic ",
      seen.from ? link("« before ", "topics", text, Math.max(0, seen.from - 100)) : "",
      next < seen.count ? link(" next »", "topics", text, next) : ""),
    table(["topic", "partitions", "copies", "under-replicated"],
      seen.topics.map((t) => [link(t.name, "topic", t.name), t.partitions, t.replicas, t.under_replicated])),
    el("h2", {}, "Create a topic"),
    form("Create", [
      field("name", "name", { required: "" }), field("partitions", "partitions", { type: "number", min: 1 }), field("copies", "replicas", { type: "number", min: 1 }),
      el("label", {}, "configs, one key=value per line", el("textarea", { name: "configs", rows: 1 })),
    ], async (given) => {
      const lines = given.configs.split("\n").map((line) => line.trim()).filter(Boolean);
      const configs = Object.fromEntries(lines.map((line) => [line.split("=")[0], line.slice(line.indexOf("=") + 1)]));
      await order("create-topic", { ...given, configs });
      location.hash = "#/topic/" + encodeURIComponent(given.name);
      return `topic ${given.name} was created`;
    }),
  ];
}

async function topic(name) {
  const seen = await ask("topic", { name });
  const found = el("div", {});
  const search = form("Read", [
    choice("from", "start", ["latest", "earliest", "offset", "time"]),
    field("offset, or time in UTC (2026-01-31T12:00)", "at"), field("partition", "partition", { type: "number", min: 0, placeholder: "all" }),
    field("key is", "key"), field("contains", "text"), field("at most", "most", { type: "number", min: 1, max: 500, value: 50 }),
  ], async (given) => {
    if (given.start === "time" && !/^\d+$/.test(given.at)) {
      given.at = Date.parse(/[zZ+]/.test(given.at) ? given.at : given.at + "Z");
      if (Number.isNaN(given.at)) throw new Error("invalid time: expected milliseconds, or a time such as 2026-01-31T12:00");
    }
    const got = await ask("records", { topic: name, ...given });
    found.replaceChildren(records(got.records));
    const rest = got.whole ? "" : "; there may be more: raise the limit, or narrow the search";
    return `${got.records.length} of ${got.looked_at} records read${rest}`;
  });
  return [
    el("h1", {}, name),
    el("p", { class: "dim" }, "id " + seen.id),
    el("h2", {}, "Partitions"),
    table(["partition", "leader", "copies", "in sync", "first offset", "end offset"],
      seen.partitions.map((p) => [p.partition, p.leader < 0 ? "none" : p.leader, p.replicas.join(", "), p.in_sync.join(", "), p.first, p.end])),
    el("h2", {}, "Records"), search, found,
    el("h2", {}, "Produce a record"),
    form("Produce", [
      field("key", "key"), el("label", {}, "value", el("textarea", { name: "value", rows: 2 })), field("partition", "partition", { type: "number", min: 0, placeholder: "by key" }),
    ], async (given) => {
      const at = await order("produce", { topic: name, ...given, key: given.key || null });
      return `written at offset ${at.offset} of partition ${at.partition}`;
    }),
    el("h2", {}, "Configs"),
    table(["config", "value", "from"], seen.configs.map((c) => [c.default ? c.name : el("b", {}, c.name), c.value, c.source])),
    form("Set", [
      choice("config", "name", seen.configs.map((c) => c.name)), field("value; empty for the default", "value"),
    ], async (given) => {
      await order("set-config", { topic: name, name: given.name, value: given.value || null });
      await turn(true);
      return given.value ? `${given.name} is ${given.value}` : `${given.name} was reset to its default`;
    }),
    el("h2", {}, "Delete"),
    form("Delete the topic with all its records", [field("the topic's name, to confirm", "name", { required: "", autocomplete: "off" })], async (given) => {
      if (given.name !== name) throw new Error(`the name is not ${name}: nothing was deleted`);
      await order("delete-topic", { name });
      location.hash = "#/topics";
      return `topic ${name} was deleted`;
    }, true),
  ];
}

function records(found) {
  return table(["partition", "offset", "time (UTC)", "key", "value", "headers"],
    found.map((r) => [r.partition, r.offset, when(r.timestamp), bytes(r.key), bytes(r.value), r.headers.map(([name, value]) => el("div", {}, name + ": ", bytes(value)))]));
}

function bytes(seen) {
  if (seen.form === "null") return el("span", { class: "dim" }, "null");
  const kind = seen.schema && !seen.why ? `${seen.form}, schema ${seen.schema}` : seen.form;
  const note = seen.cut ? `${kind}, the first part of ${seen.bytes} bytes` : seen.form === "hex" ? `hex, ${seen.bytes} bytes` : seen.schema ? kind : "";
  return el("div", {}, el("pre", {}, seen.text), note ? el("span", { class: "dim" }, note) : "", seen.why ? el("div", { class: "bad" }, seen.why) : "");
}

async function groups() {
  const seen = await ask("groups");
  const others = Object.entries(seen.others).map(([kind, count]) => `${count} ${kind}`).join(", ");
  const untold = others ? el("p", { class: "dim" }, `not shown: groups of other types: ${others}`) : "";
  return [el("h1", {}, "Groups"), untold, table(["group", "state", "type"], seen.groups.map((g) => [link(g.name, "group", g.name), g.state, g.type]))];
}

async function group(name) {
  const lags = [];
  const live = el("div", {});
  const show = (seen) => {
    if (seen.error) { say(seen.error, true); return; }
    lags.push(seen.lag);
    if (lags.length > 300) lags.shift();
    live.replaceChildren(
      el("ul", { class: "figures" }, figure(seen.state, "state"), counted(seen.members.length, "member"), figure(seen.lag, seen.lag === 1 ? "record behind" : "records behind")),
      el("h2", {}, "Lag over the last minutes"), line(lags),
      el("h2", {}, "Partitions"),
      table(["topic", "partition", seen.type === "Share" ? "start offset" : "committed", "end", "lag", "member"], seen.partitions.map((p) => [link(p.topic, "topic", p.topic), p.partition, p.offset, p.end, p.lag, p.member])),
      el("h2", {}, "Members"),
      table(["member", "client", "host", seen.type === "Streams" ? "active tasks" : "partitions"], seen.members.map((m) => [m.id, m.client, m.host, m.partitions])));
  };
  const first = await ask("group", { name });
  show(first);
  follow("live/group", { name }, show, leaving.signal);
  const head = [
    el("h1", {}, name),
    el("p", { class: "dim" }, `${first.type} group, assignor ${first.assignor || "–"}, coordinator ${first.coordinator}`),
    live,
  ];
  if (first.type === "Share" || first.type === "Streams") {
    return [...head, el("p", { class: "dim" }, `ottla groups reset-offsets ${name} moves its offsets.`)];
  }
  const read = [...new Set(first.partitions.map((p) => p.topic))];
  const preview = el("div", {});
  return [
    ...head,
    el("h2", {}, "Reset its offsets (only without members)"),
    form("Preview", [choice("topic", "topic", read), choice("to", "to", ["earliest", "latest"])], async (given) => {
      const seen = await ask("preview-reset", { group: name, ...given });
      preview.replaceChildren(...previewed(name, given, seen.partitions, () => preview.replaceChildren()));
    }),
    preview,
  ];
}

/** The effect of a reset, and the button that applies exactly the shown offsets. */
function previewed(group, given, rows, clear) {
  const sum = (field) => rows.reduce((total, row) => total + row[field], 0);
  const offsets = Object.fromEntries(rows.map((row) => [row.partition, row.new_offset]));
  return [
    table(["topic", "partition", "committed", "new offset", "read again", "skipped", "lag then"],
      rows.map((r) => [r.topic, r.partition, r.offset, r.new_offset, r.read_again, r.skipped, r.lag])),
    el("p", {}, `${sum("read_again")} records would be read again, ${sum("skipped")} skipped.`),
    form("Move", [], async () => {
      await order("reset-offsets", { group, topic: given.topic, offsets });
      clear();
      return `${group} continues at the ${given.to} offsets of ${given.topic}`;
    }, true),
  ];
}

async function follow(path, given, show, signal, quiet = false) {
  // An EventSource could not carry the token, so the stream is parsed here.
  try {
    const answer = await request(path + "?" + new URLSearchParams(given), { signal });
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ;) {
      const { done, value } = await reader.read().catch((error) => {
        if (error.name === "AbortError") throw error;
        return { done: true }; // it was hung up on: the console has ended, or was killed
      });
      if (done) break;
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const event of events) show(JSON.parse(event.slice("data: ".length)));
    }
    if (said.className !== "bad" && !quiet) say("the connection to the console was lost; the page is not updated", true);
  } catch (error) {
    showError(error);
  }
}

function line(values) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const most = Math.max(1, ...values);
  const points = values.map((value, i) => `${(i / Math.max(1, values.length - 1)) * 100},${38 - (value / most) * 36}`);
  const drawn = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  drawn.setAttribute("points", points.join(" "));
  svg.setAttribute("viewBox", "0 0 100 40");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("class", "line");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `lag now ${values[values.length - 1]}, at most ${most}`);
  svg.append(drawn);
  return svg;
}

const pages = { overview, topics, topic, groups, group, transactions, transaction, schemas, schema, pipelines, brokers, clients, client, xray, tour };

/** A decoded part of an address. A manually written or truncated address may be invalid. */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new Error(`${part} in this address is invalid: write a percent sign in a name as %25`);
  }
}

const ofOne = ["topic", "group", "transaction", "schema", "client"];
const UNHURRIED_MS = 100; // an answer that comes sooner replaces the page before at once, without a flicker between

/** The content until the cluster has responded, in place of the previous page. */
function frame(name, parts) {
  const here = document.querySelector("nav a[aria-current]");
  return [el("h1", {}, ofOne.includes(name) ? parts[0] : here?.textContent ?? "Overview"), el("p", { class: "dim" }, "loading …")];
}

/** Show the page of the address; `refresh` if it is shown already and its data has changed. */
async function turn(refresh = false) {
  leaving.abort();
  leaving = new AbortController();
  const mine = leaving, from = document.activeElement;
  const [name, ...parts] = location.hash.replace(/^#\/?/, "").split("/");
  for (const each of document.querySelectorAll("nav a")) {
    const here = each.hash.slice(2).replace(/s$/, "") === (name || "overview").replace(/s$/, "");
    if (here) each.setAttribute("aria-current", "page"); else each.removeAttribute("aria-current");
  }
  const waits = () => { if (mine === leaving) page.replaceChildren(...frame(name, decodedParts)); };
  let decodedParts = [], timer;
  page.setAttribute("aria-busy", "true");
  try {
    decodedParts = parts.map(decoded);
    if (!refresh) timer = setTimeout(waits, UNHURRIED_MS);
    const made = await (Object.hasOwn(pages, name) ? pages[name] : overview)(...decodedParts);
    if (mine === leaving) page.replaceChildren(...made);
  } catch (error) {
    if (mine === leaving && error.name !== "AbortError") page.replaceChildren(el("h1", {}, "The page could not be loaded"), el("p", { class: "bad" }, error.message));
  }
  clearTimeout(timer);
  if (mine !== leaving) return;
  page.removeAttribute("aria-busy");
  // Do not move the focus if the user moved it meanwhile.
  if ([from, document.body].includes(document.activeElement)) page.focus({ preventScroll: true });
}

document.addEventListener("click", (event) => { if (event.target.closest("a")) say(""); });
window.addEventListener("hashchange", () => turn());
turn();
