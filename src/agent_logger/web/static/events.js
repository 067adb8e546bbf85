// A stream of events for as long as the page can be seen: a browser has six connections to a server, and many tabs.
export function listen(address, handlers) {
  let source;
  const start = () => {
    if (source || document.hidden) return;
    source = new EventSource(address);
    for (const [name, handler] of Object.entries(handlers)) source.addEventListener(name, handler);
  };
  const stop = () => { source?.close(); source = undefined; };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return stop();
    start();
    handlers.changed(); // whatever happened meanwhile
  });
  addEventListener("pagehide", stop);
  start();
}
