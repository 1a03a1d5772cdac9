"use strict";
// Pipelines: their states, updated while the page is open, and the resending of dead letters.

const ILL = ["failed", "killed"];

function rate(name, rows, seen) {
  const known = seen.get(name) ?? [];
  seen.set(name, [...known, [performance.now(), rows ?? 0]].slice(-10));
  const [[since, first], [now, last]] = [seen.get(name)[0], seen.get(name).at(-1)];
  return now > since && last >= first ? Math.round(((last - first) * 1000) / (now - since)) : "–";
}

async function pipelines() {
  const first = await ask("pipelines");
  if (first === null) return [
    el("h1", {}, "Pipelines"),
    el("p", {}, "There are no pipelines. Start the console with ", el("code", {}, "ottla console --pipelines FOLDER"), ", the folder of their files."),
  ];
  const live = el("div", {});
  const before = new Map();
  const show = (seen) => {
    if (seen.error) { say(seen.error, true); return; }
    const ill = seen.filter((p) => p.last_error);
    live.replaceChildren(
      table(["pipeline", "state", "lag", "dead letters", "rows/s", "rows in", "rows out", "batch", "batch seconds"], seen.map((p) => [
        p.name, el("span", { class: ILL.includes(p.state) ? "bad" : null }, p.state), p.lag, el("span", { class: p.dead_letters ? "bad" : null }, p.dead_letters ?? "–"),
        rate(p.name, p.rows_in, before), p.rows_in, p.rows_out, p.batch, p.seconds])),
      ...ill.flatMap((p) => [el("h2", {}, `Last error of ${p.name}`), el("p", {}, p.last_error)]));
  };
  show(first);
  follow("live/pipelines", {}, show, leaving.signal);
  return [
    el("h1", {}, "Pipelines"),
    live,
    el("h2", {}, "Pause and resume"),
    form("Pause", [choice("pipeline to pause", "name", first.map((p) => p.name))], async (given) => order("pause", given)),
    form("Resume", [choice("pipeline to resume", "name", first.map((p) => p.name))], async (given) => order("resume", given)),
    el("h2", {}, "Resend dead letters to their source topics"),
    form("Send again", [choice("pipeline", "name", first.map((p) => p.name))], async (given) => given.name + ": " + (await order("resend", given))),
  ];
}
