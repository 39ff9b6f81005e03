// Refreshes a page when something changes. Without this script every page and every form works, too.
"use strict";
(() => {
  const state = document.getElementById("live-state");
  const least = 400;
  const most = 3000;
  let timer = 0;
  let ready = 0;
  let begun = 0;
  // The first change is shown at once. Then the page waits twenty times as long as a refresh takes:
  // all open pages together keep the server busy for a twentieth of the time, and the last change
  // is never lost.
  const refresh = () => {
    if (timer) return;
    timer = setTimeout(() => {
      timer = 0;
      begun = performance.now();
      ready = begun + least;
      document.body.dispatchEvent(new CustomEvent("signoff:refresh"));
    }, Math.max(0, ready - performance.now()));
  };
  document.addEventListener("htmx:after:swap", () => {
    ready = Math.max(ready, performance.now() + Math.min(most, 20 * (performance.now() - begun)));
  });
  let connected = false;
  document.addEventListener("htmx:sse:after:connection", () => {
    connected = true;
    state.textContent = "live";
  });
  // While there is no connection, the page looks by itself from time to time.
  setInterval(() => { if (!connected) refresh(); }, 5000);
  document.addEventListener("htmx:sse:before:message", (event) => {
    event.preventDefault();
    if (event.detail.message.event === "gone") {
      state.textContent = "this run was deleted";
    } else {
      refresh();
    }
  });
  for (const name of ["htmx:sse:error", "htmx:sse:close"]) {
    document.addEventListener(name, () => {
      connected = false;
      if (state.textContent === "live") state.textContent = "not connected";
    });
  }
})();
