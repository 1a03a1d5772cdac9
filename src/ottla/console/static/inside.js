"use strict";
// The internals of a traced broker: groups, waiting requests, logs, replicas, the cleaner, latencies.

Object.assign(BOXES, {
  groups: ["GroupCoordinator", "group.initial.rebalance.delay.ms, session.timeout.ms, group.consumer.session.timeout.ms",
    "Manages the groups with offsets on this broker: their members, what each member waits for, and the generation or epoch. A member that sends no heartbeat within its session timeout is removed, and the others get its partitions."],
  purgatory: ["Purgatory", "fetch.min.bytes, fetch.max.wait.ms, acks",
    "Requests that cannot be completed yet wait here: a Fetch for more bytes, a Produce with acks=all for replicas. Each is checked again when its condition may be met, or when its timeout has passed."],
  logs: ["LogManager", "segment.bytes, segment.ms, retention.ms",
    "The log of a partition is a sequence of segments; records are appended to the last one, the active segment. A full segment is closed and a new one is created; old ones are deleted by retention or compacted by the cleaner."],
  replicas: ["ReplicaManager", "replica.lag.time.max.ms, min.insync.replicas",
    "Other brokers replicate the partitions that this broker leads by fetching them. Records that all in-sync replicas have are below the high watermark and can be read; a replica that lags for that long is removed from the in-sync replicas."],
  cleaner: ["LogCleaner", "min.cleanable.dirty.ratio, log.cleaner.backoff.ms, cleanup.policy",
    "Keeps the last record of each key in compacted topics. It cleans the log with the largest share of uncleaned bytes, once that share exceeds the setting."],
  served: ["Requests", "slow.request.ms",
    "Latencies by API since the broker started: the given percentage of responses took at most the shown time. The wait of a Fetch for records is included."],
});
Object.assign(TOUCHES, { GroupNoted: ["groups"], WaitBegun: ["purgatory"], WaitOver: ["purgatory", "served"], CleaningBegun: ["cleaner"], Compacted: ["cleaner", "logs"] });
for (const kind of ["WaitBegun", "WaitOver"]) FREQUENT.add(kind);
const INSIDE = ["groups", "purgatory", "logs", "replicas", "cleaner", "served"];

function insideBroker(seen) {
  return {
    groups: [...seen.groups.flatMap(groupRows), ...more(seen.more_groups)].concat(seen.groups.length ? [] : [row(t("no group is in memory"))]),
    purgatory: [seen.waiting.length ? table(["request", "client", "waits for", "bytes missing", "since", "at most for"].map(t), seen.waiting.map((w) =>
      [w.api, w.client_id, w.places.join(", "), w.missing_bytes || "–", ms(w.since_ms), ms(w.left_ms)])) : row(t("no request waits")), ...more(seen.more_waiting)],
    logs: [...seen.partitions.map(logRows), ...more(seen.more_partitions)].concat(seen.partitions.length ? [] : [row(t("no log is open"))]),
    replicas: copies(seen.partitions),
    cleaner: [row(seen.cleaner.at === null ? t("at rest") : [el("b", {}, seen.cleaner.at), ` ${t("since")} ${ms(seen.cleaner.since_ms)}`]),
      seen.cleaner.logs.length ? table(["log", "dirty", "from"].map(t), seen.cleaner.logs.map((log) => [log.partition + (log.due ? " *" : ""), percent(log.dirty_ratio), percent(log.least_ratio)])) : row(t("no compacted log was checked yet"))],
    served: [row(el("b", {}, seen.connections), ` ${t("connections")}`), latencies(seen.requests), askers(seen.clients)],
  };
}

const more = (count) => (count > 0 ? [row(t("and more: "), count)] : []);
const percent = (share) => `${Math.round(share * 100)} %`;
const bound = (value) => (value === null ? "> 10 s" : "≤ " + (value < 10 ? `${value} ms` : ms(value)));
const latencies = (requests) => (requests.length ? table(["API", "answers", "50 %", "95 %", "99 %"].map(t), requests.map((r) => [r.api, r.answers, bound(r.p50_ms), bound(r.p95_ms), bound(r.p99_ms)])) : row(t("no request yet")));

const askers = (clients) => (clients.length ? table(["client", "requests"].map(t), clients.map((c) => [c.client_id || "–", c.requests])) : "");

function groupRows(group) {
  const until = group.left_ms === null ? "" : `, ${t("continues in")} ${ms(group.left_ms)}`;
  return [
    el("p", {}, link(group.group, "group", group.group), " ", el("span", { class: "state" }, group.state), ` ${group.kind === "consumer" ? t("epoch") : t("generation")} ${group.epoch}${group.protocol ? ", " + group.protocol : ""}${until}`),
    group.cause ? el("p", { class: "dim" }, t("last rebalance: "), group.cause) : "",
    group.members.length ? table(["member", "waits for", "partitions", "session expires in"].map(t), group.members.map((m) => [
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
  return [rows.length ? table(["partition", "broker", "log end", "behind", "for", "in sync"].map(t), rows) : row(t("no other broker replicates the partitions of this one"))];
}

// On the page of brokers: their latencies, and links to their internals.
async function insides(cluster) {
  const { clients } = await ask("traced");
  const open = clients.filter((each) => each.kind === "broker" && each.cluster === cluster);
  if (!open.length) return [el("h2", {}, "Inside"),
    el("p", { class: "dim" }, "No broker of this cluster is traced. Start an Ottla broker with the console's folder: ottla broker --trace FOLDER. Kafka's brokers cannot be traced; they publish metrics by JMX.")];
  return open.flatMap((each) => {
    const live = el("div");
    let before = "";
    follow("live/traced", { name: each.name }, (frame) => {
      const now = JSON.stringify([frame.snapshot?.requests, frame.snapshot?.clients]);
      if (frame.snapshot && now !== before) live.replaceChildren(latencies(frame.snapshot.requests), askers(frame.snapshot.clients));
      before = now;
    }, leaving.signal, true);
    return [el("h2", {}, `Latencies of ${each.client_id}`), live, el("p", {}, link(`internals of ${each.client_id}`, "xray", each.name), ": groups, waiting requests, logs, replicas, the cleaner")];
  });
}
