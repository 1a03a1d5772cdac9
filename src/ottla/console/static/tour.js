"use strict";
// The guided tour: real clients in another process play a chapter step by step, and the X-ray draws them.

async function tour(name = "") {
  const { chapters } = await ask("tour");
  const chapter = chapters.find((each) => each.name === name);
  return chapter ? new Played(chapter, chapters).drawn() : [
    el("h1", {}, "Tour"),
    el("p", {}, "Each chapter plays on a broker of its own, with real clients, and shows their internals. Your cluster is not used."),
    el("ol", {}, chapters.map((each) => el("li", {}, link(each.title, "tour", each.name)))),
  ];
}

class Played {
  constructor(chapter, chapters) {
    this.chapter = chapter;
    this.after = chapters[chapters.indexOf(chapter) + 1];
    this.signal = leaving.signal;
    this.shown = null; // the socket of the client that is looked at
  }

  drawn() {
    this.begin = el("button", { type: "button", onclick: () => this.play() }, "Begin");
    this.next = el("button", { type: "button", disabled: "", onclick: () => this.goOn() }, "Continue");
    this.steps = el("ol", { class: "steps", "aria-live": "polite" });
    this.film = el("div");
    return [el("h1", {}, this.chapter.title), el("div", { class: "bar", role: "group", "aria-label": "chapter" }, this.begin, this.next),
      this.steps, this.film,
      el("p", {}, link("All chapters", "tour"), this.after ? [" · ", "next: ", link(this.after.title, "tour", this.after.name)] : "")];
  }

  async play() {
    try {
      this.steps.replaceChildren();
      this.begin.textContent = "Restart";
      this.wait("the broker starts …");
      await order("tour-play", { name: this.chapter.name });
      await follow("live/tour", {}, (step) => this.take(step).catch(showError), this.signal, true);
    } catch (error) { say(error.message, true); }
  }

  async goOn() {
    try {
      this.wait("running …");
      await order("tour-next", {});
    } catch (error) { say(error.message, true); }
  }

  wait(text) { this.next.disabled = true; say(text); }

  async take(step) {
    if (step.error) { say(step.error, true); return; }
    if (step.ended) { this.next.disabled = true; say("the chapter has ended"); return; }
    say("");
    for (const before of this.steps.children) before.removeAttribute("aria-current");
    this.steps.append(el("li", { "aria-current": "step" }, step.text));
    this.next.disabled = false;
    this.next.focus();
    const { clients } = await ask("tour-clients");
    const seen = clients.filter((each) => each.client_id === step.look).sort((a, b) => a.since_ms - b.since_ms).pop();
    if (!seen || seen.name === this.shown) return; // keep the last state of a stopped client
    this.shown = seen.name;
    this.looking?.abort();
    this.looking = new AbortController();
    const film = new Film({});
    this.film.replaceChildren(...film.drawn(step.look).slice(1));
    film.listen(seen.name, AbortSignal.any([this.signal, this.looking.signal]), "live/tour-client", true);
  }
}
