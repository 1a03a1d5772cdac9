"use strict";
// Clients that push metrics to their brokers (KIP-714).

const rounded = (value) => (value === null ? "–" : Number.isInteger(value) ? String(value) : value.toLocaleString("en", { maximumFractionDigits: 2 }));

async function clients(text = "") {
  const seen = await ask("clients", { text });
  return [
    el("h1", {}, "Clients"),
    form("Find", [field("client, group or id contains", "text", { value: text })], (given) => { location.hash = "#/clients/" + encodeURIComponent(given.text); }),
    ...seen.wrong.map((why) => el("p", { class: "bad" }, why)),
    el("p", { class: "dim" }, whoPushes(seen)),
    table(["client", "kind", "of", "records a second", "requests a second", "request latency", "behind", "failed", "received by broker"],
      seen.clients.map((c) => [link(c.client_id || c.instance, "client", c.instance), c.kind, c.of, rounded(c.records), rounded(c.requests), ms(c.latency_ms), rounded(c.lag),
        el("span", { class: c.errors ? "bad" : null }, rounded(c.errors)), c.brokers.join(", ")])),
    el("h2", {}, "Metrics subscriptions"),
    table(["subscription", "metrics", "every", "of"],
      Object.entries(seen.subscriptions).map(([name, s]) => [name, s.metrics || "nothing", ms(Number(s["interval.ms"])), s.match || "all clients"])),
  ];
}

function whoPushes(seen) {
  if (!seen.brokers.length && !seen.wrong.length) return "No broker publishes the metrics that clients push; an Ottla broker does with --metrics HOST:PORT.";
  if (!Object.keys(seen.subscriptions).length) return "No subscription requests metrics: ottla configs alter --client-metrics all --add-config 'metrics=*,interval.ms=10000'";
  return seen.count ? `${seen.clients.length} of ${seen.count}` : "no client";
}

async function client(instance) {
  const seen = await ask("client", { instance });
  if (seen === null) throw new Error(`unknown client ${instance}`);
  return [
    el("h1", {}, seen.client_id || instance),
    el("p", { class: "dim" }, [seen.kind, "instance " + instance, ...Object.entries(seen.facts).map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`)].filter(Boolean).join(", ")),
    table(["metric", "of", "value", "received by broker"], seen.numbers.map((n) => [n.name.replaceAll("_", " "), n.of, rounded(n.value), n.broker])),
  ];
}
