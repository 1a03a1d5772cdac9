"use strict";
// The internals of a traced client or broker (inside.js): its parts as boxes, in the order of the data flow.

const KEPT = 6000; // ten minutes of frames
const TEMPO_MS = 100;
const STATES = ["unjoined", "preparing rebalance", "completing rebalance", "stable"];
const HIGHEST_BROKER = 2 ** 30;

// name, the setting that governs it, two sentences
const BOXES = {
  poll: ["poll", "max.poll.records",
    "Your program polls for records; during the call the consumer sends requests, receives responses and takes part in its group. One call returns at most the number of records of the setting."],
  fetcher: ["Fetcher", "fetch.min.bytes, fetch.max.wait.ms",
    "It fetches from each broker all partitions without buffered records, and fetches again before the buffer is empty. The broker responds once it has that many bytes, or when that wait is over."],
  unsent: ["unsent[node]", "reconnect.backoff.ms",
    "Requests wait here for the connection to their broker to be ready. If they stay, the broker cannot be reached: the connection is retried after that pause."],
  inFlight: ["NetworkClient.inFlight", "request.timeout.ms",
    "Sent requests without a response, the oldest first; a Fetch that waits for new records is normal. After that time the connection is closed and the request retried."],
  selector: ["Selector", "receive.buffer.bytes",
    "It waits for all connections at once, reads complete responses and writes requests. The setting is the size of the system's buffer of each connection."],
  completed: ["completedFetches", "fetch.max.bytes",
    "Responses of brokers, split by partition, wait here until poll returns them. One response has about that many bytes at most."],
  records: ["records", "auto.offset.reset",
    "The assigned partitions: the position is the next offset to read, the lag its distance to the end. The setting decides where to start without a committed offset."],
  coordinator: ["ConsumerCoordinator", "group.protocol",
    "It keeps this member in its group: it finds the coordinator, joins, receives its partitions and commits offsets. The setting chooses between the classic protocol and KIP-848's, in which the broker assigns partitions."],
  heartbeat: ["HeartbeatThread", "max.poll.interval.ms, session.timeout.ms, heartbeat.interval.ms",
    "A background thread sends heartbeats to the coordinator independently of your program. If your program does not call poll for longer than the first setting, it leaves the group, so that other members get its partitions."],
};
// those of a producer
Object.assign(BOXES, {
  send: ["send", "buffer.memory, max.block.ms",
    "Your program sends a record, which is appended to a batch at once. The call waits only if that much memory is in use, at most for the second setting."],
  accumulator: ["RecordAccumulator", "batch.size, linger.ms",
    "Batches wait here in a queue for each partition, and new records go into the newest. A batch is sent when it is full, or when its first record has waited that long."],
  sender: ["Sender", "delivery.timeout.ms, retries",
    "A background thread sends the batches that are due for each broker, and completes them with the response. A batch that may be retried returns to its queue, until that time is over."],
  produced: ["NetworkClient.inFlight", "max.in.flight.requests.per.connection, acks",
    "Sent requests without a response, at most that many for each broker. The broker responds when as many replicas have the records as acks requires."],
  transaction: ["TransactionManager", "transactional.id, transaction.timeout.ms",
    "It numbers the batches so that none is written twice, and with a transactional.id it starts and ends transactions through the coordinator. One that is open for longer than the time-out is aborted."],
});
const PRODUCED = ["send", "accumulator", "sender", "produced"];
const FLOW = ["poll", "fetcher", "unsent", "inFlight", "selector", "completed", "records"];
const TOUCHES = {
  Polled: ["poll"], FetchSent: ["fetcher", "unsent", "inFlight"], FetchCompleted: ["selector"], Buffered: ["completed"], HandedOut: ["records", "poll"],
  HeartbeatSent: ["heartbeat"], HeartbeatAnswered: ["heartbeat"], Committed: ["coordinator"], RebalanceStarted: ["coordinator"], Joined: ["coordinator"],
  BatchBegun: ["send", "accumulator"], BatchDrained: ["accumulator", "sender"], ProduceSent: ["sender", "produced"], ProduceCompleted: ["produced"], Acknowledged: ["sender"],
  Retried: ["sender", "accumulator"], BatchSplit: ["sender", "accumulator"], BatchFailed: ["sender"],
  TransactionChanged: ["transaction"], CoordinatorAsked: ["transaction"], CoordinatorAnswered: ["transaction"],
  JoinRefused: ["coordinator"], Synced: ["coordinator"], Assigned: ["coordinator"], Revoked: ["coordinator"], Lost: ["coordinator"], Left: ["coordinator"],
};
const FREQUENT = new Set(["Polled", "FetchSent", "FetchCompleted", "Buffered", "HandedOut", "HeartbeatSent", "HeartbeatAnswered",
  "BatchBegun", "BatchDrained", "ProduceSent", "ProduceCompleted", "Acknowledged"]);

async function xray(name = "") {
  if (name) {
    const film = new Film({});
    film.listen(name, leaving.signal);
    return film.drawn(name);
  }
  const seen = await ask("traced");
  const open = el("input", { type: "file", accept: "application/json,.json", onchange: replay });
  return [
    el("h1", {}, t("X-ray")),
    el("p", {}, otherLanguage()),
    el("p", {}, t("The internals of a running consumer, producer or broker: each part as a box, live. It joins no group and does not disturb other clients.")),
    seen.clients.length
      ? table(["client", "kind", "process", "since (UTC)"].map(t), seen.clients.map((c) => [link(c.client_id, "xray", c.name), c.kind, c.pid, when(c.since_ms)]))
      : el("p", { class: "dim" }, seen.folder === null ? t("This console was started without a folder of traced programs.") : "There is no traced program in " + seen.folder + "."),
    el("h2", {}, t("How to trace a program")),
    el("pre", {}, `OTTLA_TRACE=${seen.folder ?? "FOLDER"} python program.py\nottla broker --trace ${seen.folder ?? "FOLDER"} …\nottla console --trace ${seen.folder ?? "FOLDER"} …`),
    el("h2", {}, t("Replay a recording")),
    el("p", {}, el("label", {}, t("a saved file"), open)),
  ];
}

async function replay(event) {
  try {
    const film = new Film(JSON.parse(await event.target.files[0].text()));
    page.replaceChildren(...film.drawn("a recording"));
    film.play(leaving.signal);
  } catch (error) { say("this file is not a recording of the X-ray: " + error.message, true); }
}

class Film {
  // Frames, and the one that is shown. It follows the newest unless it is paused.
  constructor({ xray: hello = null, frames = [] }) {
    if (!Array.isArray(frames) || frames.some((f) => !f || !f.snapshot || !Array.isArray(f.events))) throw new Error("its frames are incomplete");
    this.hello = hello; this.frames = frames; this.at = 0; this.paused = false; this.every = false; this.waits = {}; this.brokerEvents = [];
  }

  async listen(name, signal, path = "live/traced", quiet = false) {
    if (path === "live/traced") this.listenToBrokers(name, signal).catch(showError);
    await follow(path, { name }, (frame) => {
      if (frame.error) say(frame.error, true);
      else if (frame.ended) quiet || say("the program has stopped; its last state is shown", true);
      else if (!frame.snapshot) this.hello = frame;
      else this.add(frame);
    }, signal, quiet);
  }

  // Events of traced brokers about this client's requests are added to its frames, joined by client id and correlation id.
  async listenToBrokers(name, signal) {
    const { clients } = await ask("traced");
    const own = clients.find((each) => each.name === name);
    if (!own || own.kind === "broker") return;
    for (const each of clients.filter((one) => one.kind === "broker"))
      follow("live/traced", { name: each.name }, (frame) => frame.snapshot && this.addBrokerEvents(frame, own.client_id), signal, true);
  }

  addBrokerEvents({ snapshot, events }, client) {
    const mine = (each) => each.client_id === client && each.correlation_id >= 0;
    this.waits[snapshot.broker] = snapshot.waiting.filter(mine).map((wait) => ({ ...wait, broker: snapshot.broker }));
    this.brokerEvents.push(...events.filter((event) => mine(event.facts)).map((event) => ({ ...event, text: `broker ${snapshot.broker}: ${event.text}` })));
  }

  join(frame) {
    frame.at_broker = Object.fromEntries(Object.values(this.waits).flat().map((wait) => [wait.api + " " + wait.correlation_id, wait]));
    frame.events = [...frame.events, ...this.brokerEvents.splice(0)].sort((one, other) => one.at_ms - other.at_ms);
  }

  add(frame) {
    if (!("broker" in frame.snapshot)) this.join(frame);
    this.frames.push(frame);
    if (this.frames.length > KEPT) { this.frames.shift(); this.at = Math.max(0, this.at - 1); }
    if (!this.paused) this.at = this.frames.length - 1;
    this.show();
  }

  play(signal) {
    const beat = setInterval(() => { if (!this.paused && this.at < this.frames.length - 1) this.go(this.at + 1); }, TEMPO_MS);
    signal.addEventListener("abort", () => clearInterval(beat));
    this.show();
  }

  go(to) { this.at = Math.max(0, Math.min(this.frames.length - 1, to)); this.show(); }
  step(by) { this.pause(true); this.go(this.at + by); }
  pause(paused) {
    this.paused = paused;
    this.button.textContent = t(paused ? "Continue" : "Pause");
    this.button.setAttribute("aria-pressed", paused);
  }

  save() {
    const file = new Blob([JSON.stringify({ xray: this.hello, frames: this.frames })], { type: "application/json" });
    const url = URL.createObjectURL(file);
    el("a", { href: url, download: "xray.json" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
    say(`${this.frames.length} frames were saved as xray.json`);
  }

  drawn(name) {
    this.title = el("h1", {}, t("X-ray of ") + name);
    this.about = el("p", { class: "dim" });
    this.button = el("button", { type: "button", "aria-pressed": "false", onclick: () => this.pause(!this.paused) }, t("Pause"));
    this.range = el("input", { type: "range", min: 0, max: 0, value: 0, oninput: () => { this.pause(true); this.go(Number(this.range.value)); } });
    this.clock = el("span", { class: "clock" }); // an output would be read out ten times a second
    this.now = {}; this.boxes = {};
    const box = (id) => {
      const [title, setting, text] = BOXES[id];
      this.now[id] = el("div", { class: "now" });
      this.boxes[id] = el("section", { class: "box", "aria-label": title }, el("h3", {}, title), this.now[id],
        el("details", {}, el("summary", {}, t("what is this?")), el("p", {}, sentences(id, text)), el("p", {}, t("Setting: "), el("code", {}, setting))));
      return this.boxes[id];
    };
    this.film = el("div");
    this.box = box;
    this.events = el("ol", { class: "events" });
    const every = el("input", { type: "checkbox", onchange: () => { this.every = every.checked; this.show(); } });
    return [
      this.title, this.about,
      el("div", { class: "bar", role: "group", "aria-label": t("time") },
        this.button,
        el("button", { type: "button", onclick: () => this.step(-1) }, t("Step back")), el("button", { type: "button", onclick: () => this.step(1) }, t("Step")),
        el("button", { type: "button", onclick: () => this.save() }, t("Save as file")),
        el("label", { class: "grow" }, t("time"), this.range), this.clock),
      this.film,
      el("section", {}, el("h2", {}, t("Time line")), el("label", { class: "check" }, every, t("every event, including frequent ones")), this.events),
    ];
  }

  lay(seen, produces) { // once the kind of program is known
    if ("broker" in seen) this.film.replaceChildren(el("h2", {}, t("The parts of the broker")), el("div", { class: "flow pair parts" }, INSIDE.map(this.box)));
    else this.film.replaceChildren(el("h2", {}, t("The path of a record")), ...(produces ? [
      el("div", { class: "flow" }, PRODUCED.map(this.box)),
      el("h2", {}, t("Sequence numbers and transactions")), el("div", { class: "flow pair" }, this.box("transaction"))] : [
      el("div", { class: "flow" }, FLOW.map(this.box)),
      el("h2", {}, t("Group membership")), el("div", { class: "flow pair" }, this.box("coordinator"), this.box("heartbeat"))]));
  }

  show() {
    const frame = this.frames[this.at];
    if (!frame) return;
    const seen = frame.snapshot, produces = "accumulator" in seen;
    if (!Object.keys(this.now).length) this.lay(seen, produces);
    this.title.textContent = t("X-ray of ") + (seen.client_id ?? "broker " + seen.broker);
    this.about.textContent = this.hello ? `${this.hello.kind}, process ${this.hello.pid}` : "";
    if (frame.dropped) this.about.textContent += `; ${frame.dropped} events were dropped`;
    this.range.max = this.frames.length - 1;
    this.range.value = this.at;
    this.clock.textContent = when(frame.at_ms).slice(11) + (this.at === this.frames.length - 1 ? "" : ` (${this.frames.length - 1 - this.at} frames behind)`);
    const touched = new Set(frame.events.flatMap((event) => TOUCHES[event.event] ?? []));
    for (const [id, part] of Object.entries(this.boxes)) part.classList.toggle("busy", touched.has(id));
    for (const [id, rows] of Object.entries("broker" in seen ? insideBroker(seen) : produces ? insideProducer(seen, this.recent(), frame.at_broker) : inside(seen, this.recent(), frame.at_broker))) this.now[id].replaceChildren(...rows);
    const shown = [];
    for (let at = this.at; at >= 0 && shown.length < 100; at--) shown.push(...this.frames[at].events.filter((e) => this.every || !FREQUENT.has(e.event)).reverse());
    this.events.replaceChildren(...shown.slice(0, 100).map((event) => el("li", {}, el("time", {}, when(event.at_ms).slice(11)), " ", event.text)));
  }

  recent() { // the events of the last second
    return this.frames.slice(Math.max(0, this.at - 9), this.at + 1).flatMap((frame) => frame.events);
  }
}

const row = (...parts) => el("p", {}, ...parts);
const ms = (value) => (value === null ? "–" : value < 1000 ? `${Math.round(value)} ms` : `${(value / 1000).toFixed(1)} s`);
const size = (value) => (value < 1024 ? `${value} B` : value < 2 ** 20 ? `${(value / 1024).toFixed(1)} KiB` : `${(value / 2 ** 20).toFixed(1)} MiB`);
const called = (node) => (node < 0 ? "bootstrap" : node > HIGHEST_BROKER ? "coordinator" : "node " + node);
const of = (events, kind) => events.filter((event) => event.event === kind);

function gauge(label, value, most, text) {
  return el("label", { class: "gauge" }, `${label}: ${text}`,
    most === null ? "" : el("meter", { min: 0, max: most, high: most * 0.8, optimum: 0, value: value ?? 0 }));
}

function requests(byNode, none = "none", broker = {}) {
  const rows = Object.entries(byNode).flatMap(([node, waiting]) => waiting.map((each) => row(el("b", {}, each.api), ` ${called(Number(node))}, ${ms(each.age_ms)}`, atBroker(broker[each.api + " " + each.correlation_id]))));
  return rows.length ? rows : [row(none)];
}

const atBroker = (wait) => (wait ? el("span", { class: "dim at-broker" }, ` · waits at broker ${wait.broker} for ${wait.missing_bytes ? size(wait.missing_bytes) + " more" : "others"} of ${wait.places.join(", ")}, ${ms(wait.left_ms)} at most`) : "");

function inside(seen, events, broker) {
  const { fetcher, network, subscription, coordinator, heartbeat } = seen;
  const returned = of(events, "HandedOut").reduce((sum, event) => sum + event.facts.records, 0);
  const polls = of(events, "Polled");
  const answers = of(events, "FetchCompleted");
  return {
    poll: [row(el("b", {}, polls.length), " calls in the last second"), row(el("b", {}, returned), " records returned")],
    fetcher: [row("fetching from: ", fetcher.nodes_with_pending_fetch.map(called).join(", ") || "none"),
      gauge("buffer", fetcher.buffered_bytes, fetcher.memory_limit_bytes, `${size(fetcher.buffered_bytes)} of ${size(fetcher.memory_limit_bytes)}`)],
    unsent: requests(network.unsent),
    inFlight: requests(network.in_flight_requests, "none", broker),
    selector: [row(el("b", {}, answers.length), " responses in the last second"), row(size(answers.reduce((sum, event) => sum + event.facts.size_bytes, 0)), " of records"),
      ...answers.filter((event) => event.facts.error).slice(-2).map((event) => el("p", { class: "bad" }, event.facts.error))],
    completed: some(fetcher.completed_fetches, (each) => row(el("b", {}, each.partition), ` from ${each.offset}: ${each.records} records, ${size(each.size_bytes)}`)),
    records: some(subscription.partitions, (each) => row(el("b", {}, each.partition), ` at ${each.position ?? "?"}, lag ${each.lag ?? "?"}${each.paused ? ", paused" : ""}`), "nothing is assigned"),
    coordinator: coordinator ? inGroup(coordinator) : [row("no group.id: it reads without a group")],
    heartbeat: heartbeat ? beating(heartbeat, coordinator) : [row(coordinator ? "not started: it starts with the first poll" : "no group, no heartbeat")],
  };
}

function insideProducer(seen, events, broker) {
  const { accumulator } = seen;
  const answers = of(events, "ProduceCompleted"), failed = of(events, "BatchFailed"), again = of(events, "Retried");
  const acknowledged = of(events, "Acknowledged").reduce((sum, event) => sum + event.facts.records, 0);
  const taken = accumulator.total_bytes - accumulator.available_bytes;
  const queue = (each) => row(el("b", {}, each.partition), ` ${each.records} records in ${each.batches} batches, ${ms(each.oldest_ms)}${each.attempts > 1 ? `, sent ${each.attempts} times` : ""}`);
  return {
    send: [gauge("memory", taken, accumulator.total_bytes, `${size(taken)} of ${size(accumulator.total_bytes)}`), row(`${accumulator.waiting} calls wait for memory`)],
    accumulator: some(accumulator.queues, queue, "no record is queued"),
    sender: [...some(seen.in_flight_batches, queue, "no batch is in flight"), row(el("b", {}, acknowledged), " records acknowledged in the last second"),
      ...again.slice(-2).map((event) => row(event.text)), ...failed.slice(-2).map((event) => el("p", { class: "bad" }, event.text))],
    produced: [...requests(seen.in_flight_requests, "none", broker), row(el("b", {}, answers.length), " responses in the last second"),
      ...(answers.length ? [row("the slowest: ", ms(Math.max(...answers.map((event) => event.facts.took_ms))))] : [])],
    transaction: seen.transactional_id === null ? [row("no transactional.id")] : [row(el("b", {}, seen.transactional_id)), row(seen.transaction_state)],
  };
}

function some(items, shown, none = "none") {
  if (!items.length) return [row(none)];
  const rest = items.length > 12 ? [row(`and ${items.length - 12} more`)] : [];
  return [...items.slice(0, 12).map(shown), ...rest];
}

function inGroup(coordinator) {
  const states = STATES.map((state) => el("li", state === coordinator.state ? { class: "on", "aria-current": "step" } : {}, state));
  return [el("ol", { class: "states" }, states),
    row("group ", el("b", {}, coordinator.group_id), ` at ${coordinator.node ?? "an unknown node"}`),
    row(`generation ${coordinator.generation}, member ${coordinator.member_id || "none yet"}`), row(`${coordinator.pending_commits} pending commits`)];
}

function beating(heartbeat, coordinator) {
  const gap = coordinator.poll_gap_ms;
  return [gauge("poll gap", gap, coordinator.max_poll_interval_ms, `${ms(gap)} of ${ms(coordinator.max_poll_interval_ms)}`),
    gauge("time since the coordinator's last response", heartbeat.silence_ms, heartbeat.session_timeout_ms,
      ms(heartbeat.silence_ms) + (heartbeat.session_timeout_ms === null ? "" : ` of ${ms(heartbeat.session_timeout_ms)}`)),
    row(`next heartbeat ${heartbeat.next_ms === null ? "not due" : "in " + ms(heartbeat.next_ms)}`), ...requests(heartbeat.network.in_flight_requests, "no heartbeat in flight")];
}
