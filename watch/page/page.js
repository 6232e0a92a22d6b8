"use strict";
// Replaces the parts of the page that changed. Its only words are about a lost server.
const PATIENCE = 4000; // ms without a tick: the server hangs
const RESTART = 1000; // ms without a connection: the server is gone
const KEPT = 200; // events
const byId = (id) => document.getElementById(id);
const waiting = new Map(); // parts that are in use right now: replaced afterwards
let source, watchdog, gone;

function isUsed(part) {
  return part.querySelector(":active");
}

function replace(id, html) {
  const part = byId(id);
  if (!part) return;
  if (isUsed(part)) { waiting.set(id, html); return; }
  waiting.delete(id);
  const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
  part.innerHTML = html;
  if (focused) (byId(focused) || part.querySelector("button"))?.focus({ preventScroll: true });
}

function addEvents(items, anew) {
  const feed = byId("feed");
  if (anew) feed.innerHTML = items.map((item) => item[1]).join("");
  else for (const [id, html] of items.reverse()) {
    const known = byId(id);
    if (known) known.outerHTML = html;
    else feed.insertAdjacentHTML("afterbegin", html);
  }
  while (feed.children.length > KEPT) feed.lastElementChild.remove();
}

function take(event) {
  const tick = JSON.parse(event.data);
  if (tick.version && tick.version !== document.body.dataset.version) { location.reload(); return; }
  const held = new Map(waiting);
  for (const [id, html] of held) if (!(id in tick.parts)) replace(id, html);
  for (const id in tick.parts) replace(id, tick.parts[id]);
  addEvents(tick.feed, Boolean(tick.version));
  const flow = byId("flow");
  flow.classList.remove("flowed", "sent");
  void flow.offsetWidth;
  for (const what of ["flowed", "sent"]) flow.classList.toggle(what, tick[what]);
  clearTimeout(gone);
  gone = 0;
  lost(false);
  expect();
}

function lost(is) {
  byId("lost").hidden = !is;
  document.body.classList.toggle("lost", is);
  for (const form of document.forms) form.inert = is; // nobody would answer
  document.title = is ? "Lost the server – Rocket Rides" : byId("verdict").querySelector("h1").textContent + " – Rocket Rides";
}

function expect() {
  clearTimeout(watchdog);
  watchdog = setTimeout(() => { lost(true); connect(); }, PATIENCE);
}

function connect() {
  if (source) source.close();
  source = new EventSource("/events");
  source.onmessage = take;
  source.onerror = () => {
    // After an answer that is no stream the browser gives up; the watchdog connects again.
    if (source.readyState === EventSource.CLOSED) lost(true);
    else gone ||= setTimeout(lost, RESTART, true);
  };
  expect();
}

function disconnect() {
  source?.close();
  clearTimeout(watchdog);
  clearTimeout(gone);
  gone = 0;
}

// A tab that nobody sees leaves its connection to others: a browser has few for one server.
function shownOrHidden() {
  if (document.hidden) { disconnect(); document.title = "Rocket Rides"; } else connect();
}

function say(words) {
  const said = byId("said");
  said.textContent = words;
  said.hidden = !words;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => { said.hidden = true; }, 6000);
}

// A form is sent without leaving the page; what comes of it is in the feed.
document.addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target, data = new FormData(form, event.submitter);
  if (event.submitter) event.submitter.disabled = true;
  try {
    const answer = await fetch(form.getAttribute("action"), {
      method: "POST", body: new URLSearchParams(data), headers: { Accept: "text/plain" }, redirect: "manual",
    });
    say(answer.status >= 400 ? await answer.text() : "");
    // By then the part has been replaced, if the button has changed.
    if (answer.status < 400) await new Promise((done) => setTimeout(done, 2000));
  } catch {
    say("The server did not answer: try again when it is back.");
  }
  if (event.submitter) event.submitter.disabled = false;
});

addEventListener("visibilitychange", shownOrHidden);
addEventListener("pagehide", disconnect);
addEventListener("pageshow", (event) => { if (event.persisted) connect(); });
if (!document.hidden) connect();
