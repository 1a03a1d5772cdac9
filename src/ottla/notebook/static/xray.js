// Draws the picture of ottla.notebook.picture. Texts are set as text, never as markup.

const LANES = ["poll", "fetch", "records", "rebalance", "group"];

function element(tag, className, text) {
  const made = document.createElement(tag);
  made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) { bytes /= 1024; unit += 1; }
  return `${unit ? bytes.toFixed(1) : bytes} ${units[unit]}`;
}

function clock(at_ms) {
  return new Date(at_ms).toISOString().slice(11, 23);
}

function box(title, facts) {
  const made = element("div", "ottla-box");
  made.append(element("div", "ottla-title", title));
  for (const [name, value] of facts) {
    const row = element("div", "ottla-fact");
    row.append(element("span", "ottla-name", name), element("span", "", String(value)));
    made.append(row);
  }
  return made;
}

function boxes(picture) {
  const { totals, fetcher, group } = picture;
  const made = element("div", "ottla-boxes");
  made.append(
    box(`Consumer ${picture.client}`, [
      ["polls", totals.polls.toLocaleString()],
      ["records returned", totals.records.toLocaleString()],
    ]),
    box("Fetcher", [
      ["fetches", totals.fetches.toLocaleString()],
      ["received", size(totals.bytes)],
      ["buffered", `${size(fetcher.buffered_bytes)} of ${size(fetcher.limit_bytes)}`],
      ["in flight to nodes", fetcher.pending.join(", ") || "none"],
    ]),
  );
  if (group) {
    made.append(box(`Group ${group.id}`, [
      ["state", group.state],
      ["generation", group.generation],
      ["rebalances", totals.rebalances],
      ["since the last poll", group.poll_gap_ms === null ? "no poll yet"
        : `${(group.poll_gap_ms / 1000).toFixed(1)} of ${group.limit_ms / 1000} s`],
    ]));
  }
  return made;
}

function partitions(picture) {
  const table = element("table", "ottla-partitions");
  const head = element("tr", "");
  for (const name of ["partition", "position", "lag", "buffered records", ""]) head.append(element("th", "", name));
  table.append(head);
  const most = Math.max(1, ...picture.partitions.map((one) => one.records));
  for (const one of picture.partitions) {
    const row = element("tr", one.paused ? "ottla-paused" : "");
    row.append(
      element("td", "", one.name + (one.paused ? " (paused)" : "")),
      element("td", "ottla-number", one.position === null ? "unknown" : one.position.toLocaleString()),
      element("td", "ottla-number", one.lag === null ? "unknown" : one.lag.toLocaleString()),
      element("td", "ottla-number", one.records.toLocaleString()),
    );
    const bar = element("div", "ottla-bar");
    bar.style.width = `${(100 * one.records) / most}%`;
    const cell = element("td", "ottla-bars");
    cell.append(bar);
    row.append(cell);
    table.append(row);
  }
  if (picture.more_partitions) table.append(element("caption", "", `and ${picture.more_partitions} more partitions`));
  return table;
}

function events(picture) {
  const made = element("div", "ottla-events");
  for (const event of [...picture.events].reverse().slice(0, 12)) {
    const lane = LANES.includes(event.lane) ? event.lane : "group";
    const row = element("div", `ottla-event ottla-${lane}`);
    row.append(element("span", "ottla-time", clock(event.at_ms)), element("span", "", event.text));
    made.append(row);
  }
  return made;
}

export default {
  render({ model, el }) {
    const root = element("div", "ottla-xray");
    el.append(root);
    const draw = () => {
      const picture = model.get("picture");
      if (picture && picture.totals) root.replaceChildren(boxes(picture), partitions(picture), events(picture));
    };
    model.on("change:picture", draw);
    draw();
    return () => model.off("change:picture", draw);
  },
};
