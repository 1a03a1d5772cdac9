"use strict";
// Subjects of a schema registry: their versions, what changed between them, and a check of a schema that is not registered yet.

async function schemas(text = "", from = "0") {
  const seen = await ask("subjects", { text, from });
  if (seen === null) return [
    el("h1", {}, "Schemas"),
    el("p", {}, "There is no schema registry. Start the console with ", el("code", {}, "ottla console --registry URL"), ", the registry's address."),
  ];
  const next = seen.from + seen.subjects.length;
  return [
    el("h1", {}, "Schemas"),
    form("Find", [field("subject contains", "text", { value: text })], (given) => { location.hash = "#/schemas/" + encodeURIComponent(given.text); }),
    el("p", { class: "dim" }, seen.count ? `${seen.from + 1} to ${next} of ${seen.count} ` : "no subject ",
      seen.from ? link("« before ", "schemas", text, Math.max(0, seen.from - 100)) : "",
      next < seen.count ? link(" next »", "schemas", text, seen.from + 100) : ""),
    table(["subject", "type", "newest version", "id", "compatibility"],
      seen.subjects.map((s) => [link(s.name, "schema", s.name), s.type, s.version, s.id, s.compatibility])),
  ];
}

const changed = (line) => el("span", { class: line[0] === "+" ? "added" : line[0] === "-" ? "bad" : null }, line + "\n");

async function schema(name, version = "") {
  const seen = await ask("subject", { name, version });
  const answer = el("div", {});
  return [
    el("h1", {}, name),
    el("p", { class: "dim" }, `${seen.type}, compatibility ${seen.compatibility}`),
    el("p", {}, "versions ", seen.versions.flatMap((v) => [v === seen.version ? el("b", {}, v) : link(v, "schema", name, v), " "])),
    el("h2", {}, `Version ${seen.version}, id ${seen.id}`),
    el("pre", { class: "schema", tabindex: 0, "aria-label": "schema" }, seen.schema),
    seen.references.length ? el("h2", {}, "References") : "",
    seen.references.length ? table(["name", "subject", "version"], seen.references.map(([as, subject, v]) => [as, link(subject, "schema", subject, v), v])) : "",
    seen.before === null ? "" : el("h2", {}, `Difference to version ${seen.before}`),
    seen.before === null ? "" : seen.diff.length ? el("pre", { class: "schema", tabindex: 0, "aria-label": "difference" }, seen.diff.map(changed)) : el("p", {}, "The texts are equal."),
    el("h2", {}, "Check a schema"),
    el("p", { class: "dim" }, "Nothing is registered. The schema has the type and the references of the newest version."),
    form("Check", [el("label", {}, "schema", el("textarea", { name: "schema", rows: 6, cols: 60, required: "" }))], async (given) => {
      answer.replaceChildren();
      const checked = await order("check-schema", { name, schema: given.schema });
      answer.replaceChildren(checked.reasons.length ? el("ul", {}, checked.reasons.map((reason) => el("li", {}, reason))) : "");
      return checked.reasons.length ? `not compatible with ${name} (${checked.compatibility})` : `compatible with ${name} (${checked.compatibility})`;
    }),
    answer,
  ];
}
