// Search needs a worker, and a browser starts none for a page that was opened from a folder (file:).
// So there, and only there, a hidden frame takes the place of the worker, with the same messages.
// The name of this file tells the plugin `offline` not to load such a script from another host.
if (location.protocol === "file:") {
  const prelude = () => {
    window.postMessage = (data) => parent.postMessage(data, "*");
    window.importScripts = (...urls) =>
      urls.reduce(
        (loaded, url) =>
          loaded.then(
            () =>
              new Promise((resolve, reject) => {
                const script = document.createElement("script");
                Object.assign(script, { src: url, onload: resolve, onerror: reject });
                document.body.appendChild(script);
              }),
          ),
        Promise.resolve(),
      );
  };

  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const page = this.frame.contentDocument;
      page.open();
      page.write(
        `<body><script>(${prelude})()</script><script src="${encodeURI(url)}"></script></body>`,
      );
      page.close();
      // After open(), which removes all listeners of the frame.
      this.ready = new Promise((resolve) => (this.frame.contentWindow.onload = resolve));
      this.receive = (event) => {
        if (event.source !== this.frame.contentWindow) return;
        this.dispatchEvent(new MessageEvent("message", { data: event.data }));
        this.onmessage?.(event);
      };
      window.addEventListener("message", this.receive);
    }

    postMessage(data) {
      this.ready.then(() =>
        this.frame.contentWindow.dispatchEvent(
          new MessageEvent("message", { data: structuredClone(data) }),
        ),
      );
    }

    terminate() {
      window.removeEventListener("message", this.receive);
      this.frame.remove();
    }
  };
}
