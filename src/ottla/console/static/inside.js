"use strict";
// The inside of a broker that lets us look: its group machines, who waits, its logs and their copies, the cleaner, its answers.

Object.assign(BOXES, {
  groups: ["GroupCoordinator", "group.initial.rebalance.delay.ms, session.timeout.ms, group.consumer.session.timeout.ms",
    "It keeps the groups whose offsets this broker leads: who is in them, what each member waits for, and in which generation or epoch. A member of which nothing is heard for its session is out, and the others share its partitions."],
  purgatory: ["Purgatory", "fetch.min.bytes, fetch.max.wait.ms, acks",
    "Requests that cannot be answered yet wait here: a Fetch for more bytes, a Produce with acks=all for copies. Each is looked at again when what it misses has come, or when its time is over."],
  logs: ["LogManager", "segment.bytes, segment.ms, retention.ms",
    "The log of a partition is a row of segments, and records go to the end of the last, the active one. A full segment is closed and a new one begun; old ones are deleted by retention or made smaller by the cleaner."],
  replicas: ["ReplicaManager", "replica.lag.time.max.ms, min.insync.replicas",
    "Other brokers copy the partitions that this one leads by fetching them. What all in sync have lies below the high watermark and can be read; who lacks something for that long is taken out of sync."],
  cleaner: ["LogCleaner", "min.cleanable.dirty.ratio, log.cleaner.backoff.ms, cleanup.policy",
    "Of a compacted topic it keeps the last record of each key. It takes the log with the largest share of bytes it has not seen, once that share is above the setting."],
  served: ["Requests", "slow.request.ms",
    "How long answers took since the broker began, by API: below the time that is shown lie that many of a hundred. What a Fetch waits for records is in it."],
});
Object.assign(TOUCHES, { GroupNoted: ["groups"], WaitBegun: ["purgatory"], WaitOver: ["purgatory", "served"], CleaningBegun: ["cleaner"], Compacted: ["cleaner", "logs"] });
for (const kind of ["WaitBegun", "WaitOver"]) FREQUENT.add(kind);
const INSIDE = ["groups", "purgatory", "logs", "replicas", "cleaner", "served"];

function insideBroker(seen) {
  return {
    groups: [...seen.groups.flatMap(groupRows), ...more(seen.more_groups)].concat(seen.groups.length ? [] : [row(t("no group is in memory"))]),
    purgatory: [seen.waiting.length ? table(["request", "client", "waits for", "bytes missing", "since", "at most for"].map(t), seen.waiting.map((w) =>
      [w.api, w.client_id, w.places.join(", "), w.missing_bytes || "–", ms(w.since_ms), ms(w.left_ms)])) : row(t("nobody waits")), ...more(seen.more_waiting)],
    logs: [...seen.partitions.map(logRows), ...more(seen.more_partitions)].concat(seen.partitions.length ? [] : [row(t("no log is open"))]),
    replicas: copies(seen.partitions),
    cleaner: [row(seen.cleaner.at === null ? t("at rest") : [el("b", {}, seen.cleaner.at), ` ${t("since")} ${ms(seen.cleaner.since_ms)}`]),
      seen.cleaner.logs.length ? table(["log", "dirty", "from"].map(t), seen.cleaner.logs.map((log) => [log.partition + (log.due ? " *" : ""), percent(log.dirty_ratio), percent(log.least_ratio)])) : row(t("no compacted log was looked at yet"))],
    served: [row(el("b", {}, seen.connections), ` ${t("connections")}`), latencies(seen.requests), askers(seen.clients)],
  };
}

const more = (count) => (count > 0 ? [row(t("and as many more: "), count)] : []);
const percent = (share) => `${Math.round(share * 100)} %`;
const bound = (value) => (value === null ? "> 10 s" : "≤ " + (value < 10 ? `${value} ms` : ms(value)));
const latencies = (requests) => (requests.length ? table(["API", "answers", "50 %", "95 %", "99 %"].map(t), requests.map((r) => [r.api, r.answers, bound(r.p50_ms), bound(r.p95_ms), bound(r.p99_ms)])) : row(t("nobody has asked yet")));

const askers = (clients) => (clients.length ? table(["client", "requests"].map(t), clients.map((c) => [c.client_id || "–", c.requests])) : "");

function groupRows(group) {
  const until = group.left_ms === null ? "" : `, ${t("goes on in")} ${ms(group.left_ms)}`;
  return [
    el("p", {}, link(group.group, "group", group.group), " ", el("span", { class: "state" }, group.state), ` ${group.kind === "consumer" ? t("epoch") : t("generation")} ${group.epoch}${group.protocol ? ", " + group.protocol : ""}${until}`),
    group.cause ? el("p", { class: "dim" }, t("last shared out: "), group.cause) : "",
    group.members.length ? table(["member", "waits for", "partitions", "session over in"].map(t), group.members.map((m) => [
      [m.member_id + (m.member_id === group.leader ? ` (${t("leads")})` : "")], m.waits_for || "–", m.partitions, ms(m.session_ms)])) : "",
    ...more(group.more_members),
  ];
}

function logRows(log) {
  const segments = log.segments.map((s) => el("li", { class: s.active ? "active" : null },
    el("b", {}, s.base_offset), ` ${size(s.size_bytes)}`, s.offset_entries === null ? "" : `, ${s.offset_entries} + ${s.time_entries} ${t("index entries")}`, s.active ? `, ${t("active")}` : ""));
  return el("div", { class: "log" },
    el("p", {}, el("b", {}, log.partition), ` ${log.leads ? t("leads") : t("follows")}, ${t("epoch")} ${log.leader_epoch}, ${size(log.size_bytes)}`),
    el("p", {}, `${t("start")} ${log.log_start} · ${t("stable")} ${log.last_stable} · ${t("high watermark")} ${log.high_watermark} · ${t("end")} ${log.log_end}`),
    el("ul", { class: "segments" }, log.more_segments ? el("li", {}, `${log.more_segments} ${t("before")}`) : "", segments));
}

function copies(partitions) {
  const rows = partitions.flatMap((log) => log.replicas.map((copy) => [log.partition, copy.broker, copy.log_end < 0 ? "–" : copy.log_end, copy.log_end < 0 ? "–" : Math.max(0, log.log_end - copy.log_end),
    ms(copy.lag_ms), el("span", { class: copy.in_sync ? null : "bad" }, copy.in_sync ? t("yes") : t("no"))]));
  return [rows.length ? table(["partition", "broker", "log end", "behind", "for", "in sync"].map(t), rows) : row(t("no other broker copies what this one leads"))];
}

// On the page of brokers: how long their answers take, and the way to their inside.
async function insides(cluster) {
  const { clients } = await ask("traced");
  const open = clients.filter((each) => each.kind === "broker" && each.cluster === cluster);
  if (!open.length) return [el("h2", {}, "Inside"),
    el("p", { class: "dim" }, "No broker of this cluster lets this console look. One of Ottla's does where it is started with the console's folder: ottla broker --trace FOLDER. Kafka's own do not; they tell their figures by JMX.")];
  return open.flatMap((each) => {
    const live = el("div");
    let before = "";
    follow("live/traced", { name: each.name }, (frame) => {
      const now = JSON.stringify([frame.snapshot?.requests, frame.snapshot?.clients]);
      if (frame.snapshot && now !== before) live.replaceChildren(latencies(frame.snapshot.requests), askers(frame.snapshot.clients));
      before = now;
    }, leaving.signal, true);
    return [el("h2", {}, `Answers of ${each.client_id}`), live, el("p", {}, link(`${each.client_id} from inside`, "xray", each.name), ": groups, who waits, logs, copies, the cleaner")];
  });
}
