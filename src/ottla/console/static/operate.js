"use strict";
// Brokers with their disks, and transactions.

const room = (bytes) => (bytes === null ? "–" : bytes < 2 ** 30 ? size(bytes) : `${(bytes / 2 ** 30).toFixed(1)} GiB`);

async function brokers() {
  const seen = await ask("brokers");
  const disks = seen.brokers.flatMap((b) => b.directories.map((d) => [b.id, d]));
  const lagging = seen.brokers.filter((b) => b.lagging.length);
  return [
    el("h1", {}, "Brokers"),
    el("p", { class: "dim" }, "cluster " + (seen.cluster ?? "without an id")),
    table(["id", "address", "rack", "leads", "preferred", "replicas", "lagging"],
      seen.brokers.map((b) => [b.id, b.address, b.rack, b.leads, b.preferred, b.copies, el("span", { class: b.lagging.length ? "bad" : null }, b.lagging.length)])),
    ...lagging.flatMap((b) => [el("h2", {}, `Broker ${b.id} is not in sync in`), el("p", {}, b.lagging.slice(0, 200).join(", "))]),
    el("h2", {}, "Disks"),
    seen.unseen ? el("p", { class: "bad" }, seen.unseen) : table(["broker", "directory", "replicas", "size", "disk", "largest"], disks.map(([id, d]) => [id,
      [d.path, d.cordoned ? " (cordoned: no new partitions)" : "", d.moving_here ? ` (${d.moving_here} moving here)` : ""].join(""), d.copies, room(d.bytes), full(d),
      d.largest.map((each) => el("div", {}, `${each.partition} ${room(each.bytes)}`))])),
    ...(seen.quorum ? quorum(seen.quorum) : []),
    ...await insides(seen.cluster),
  ];
}

function full(disk) {
  if (disk.total === null || disk.usable === null || disk.total <= 0) return "–";
  const used = disk.total - disk.usable;
  return el("label", { class: "gauge" }, `${room(disk.usable)} free of ${room(disk.total)}`, el("meter", { min: 0, max: disk.total, high: disk.total * 0.85, optimum: 0, value: used }));
}

function quorum(seen) {
  return [el("h2", {}, "Metadata quorum"),
    el("p", {}, seen.leader < 0 ? "No leader." : `Leader ${seen.leader} in epoch ${seen.epoch}, high watermark ${seen.high_watermark}.`),
    table(["id", "role", "records behind"], [...seen.voters.map((each) => [each.id, each.id === seen.leader ? "leader" : "voter", each.behind]), ...seen.observers.map((each) => [each.id, "observer", each.behind])])];
}

async function transactions(text = "") {
  const seen = await ask("transactions", { text });
  return [
    el("h1", {}, "Transactions"),
    form("Find", [field("id contains", "text", { value: text })], (given) => { location.hash = "#/transactions/" + encodeURIComponent(given.text); }),
    el("p", { class: "dim" }, seen.count ? `${seen.transactions.length} of ${seen.count}, open ones first` : "no transactional id"),
    table(["transactional id", "state", "open for", "timeout", "producer id", "coordinator"],
      seen.transactions.map((t) => [link(t.name, "transaction", t.name), t.state,
        el("span", { class: t.age_ms !== null && t.age_ms > t.timeout_ms ? "bad" : null }, ms(t.age_ms)), ms(t.timeout_ms), t.producer, t.coordinator])),
  ];
}

async function transaction(name) {
  const seen = await ask("transaction", { name });
  return [
    el("h1", {}, name),
    el("ul", { class: "figures" }, figure(seen.state, "state"), counted(seen.partitions.length, "partition"), figure(seen.producer, "producer id"), figure(seen.epoch, "epoch")),
    el("p", { class: "dim" }, `coordinator ${seen.coordinator}, timeout ${ms(seen.timeout_ms)}, ` + (seen.began_ms === null ? "no open transaction" : `started ${when(seen.began_ms)} UTC`)),
    el("h2", {}, "Partitions of the open transaction"),
    table(["topic", "partition", "since offset"], seen.partitions.map((p) => [link(p.topic, "topic", p.topic), p.partition, p.from])),
    el("h2", {}, "Fence its producer"),
    el("p", {}, "Aborts the open transaction. The program with this id gets an error and must create a new producer."),
    form("Abort and fence", [field("the transactional id, to confirm", "name", { required: "", autocomplete: "off" })], async (given) => {
      if (given.name !== name) throw new Error(`the id is not ${name}: nothing was done`);
      await order("fence", { name });
      await turn(true);
      return `the producer of ${name} is fenced`;
    }, true),
  ];
}
