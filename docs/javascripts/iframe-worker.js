// A Worker for pages that were opened from a folder: browsers start none for `file:` addresses. Its script runs in a hidden frame of the
// page, with the messages of a worker. mkdocs-material's search knows it by the name `IFrameWorker`, and awaits `importScripts`.
"use strict";

class IFrameWorker extends EventTarget {
  #frame = document.createElement("iframe");
  #ready;

  constructor(address) {
    super();
    this.#frame.hidden = true;
    document.documentElement.append(this.#frame);
    const inside = this.#frame.contentWindow;
    const load = (url) => new Promise((loaded, failed) => {
      const script = inside.document.createElement("script");
      script.src = new URL(url, document.baseURI).href;
      script.onload = loaded;
      script.onerror = () => failed(new Error(`${script.src} cannot be loaded`));
      inside.document.head.append(script);
    });
    inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
    inside.importScripts = (...urls) => urls.reduce((before, url) => before.then(() => load(url)), Promise.resolve());
    this.#ready = load(address);
  }

  postMessage(data) {
    const inside = this.#frame.contentWindow;
    this.#ready.then(
      () => inside.dispatchEvent(new inside.MessageEvent("message", { data })),
      (error) => this.dispatchEvent(new ErrorEvent("error", { message: error.message })));
  }

  terminate() {
    this.#frame.remove();
  }
}

window.IFrameWorker = IFrameWorker;
if (location.protocol === "file:") window.Worker = IFrameWorker;
