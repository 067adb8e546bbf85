// The conversation: segments are fetched when they come near, tools when they are opened, the end while it grows.
import { listen } from "./events.js";
import { say } from "./words.js";

const reading = document.querySelector("[data-session]");
const url = reading.dataset.session;
const conversation = document.getElementById("conversation");

function parse(html) {
  const fragment = document.createRange().createContextualFragment(html); // made and escaped by the server
  reachable(fragment);
  return fragment;
}

// What is wider than its room can be scrolled by keyboard too.
function reachable(within) {
  for (const it of within.querySelectorAll(".numbered .code")) it.tabIndex = 0;
}

async function get(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(answer.status);
  return answer.text();
}

// ---- segments

const loading = new Map();
const reach = 1500; // pixels beyond the screen
let drawing = Promise.resolve(); // one in a frame: many at once would be a jolt

function load(segment) {
  if (!segment.dataset.lines) return Promise.resolve();
  if (!loading.has(segment.id)) loading.set(segment.id, replace(segment).catch(() => loading.delete(segment.id)));
  return loading.get(segment.id);
}

async function replace(segment) {
  const html = await get(`${url}/parts/${segment.id.slice(5)}`);
  await (drawing = drawing.then(() => new Promise(requestAnimationFrame)));
  segment.replaceWith(parse(html));
  look();
}

function watch(within) {
  for (const it of within.querySelectorAll(".exchange[data-lines]")) it.style.minHeight = `${it.dataset.lines * 1.6}rem`;
}

// ---- where one is

const listed = () => new Map([...document.querySelectorAll(".toc a")].map(link => [link.hash.slice(1), link.parentElement]));
let entries = listed();
const contents = document.querySelector(".contents");
let here, moved, looking;

// The segments around the middle of the screen: those of a long session are too many to be watched one by one.
function look() {
  looking ??= requestAnimationFrame(() => {
    looking = undefined;
    const found = onScreen();
    const middle = found ?? conversation.querySelector(".exchange");
    if (!middle) return;
    const away = it => Math.max(it.getBoundingClientRect().top - innerHeight, -it.getBoundingClientRect().bottom);
    for (let it = middle; it?.matches(".exchange") && away(it) < reach; it = it.nextElementSibling) load(it);
    for (let it = middle; it?.matches(".exchange") && away(it) < reach; it = it.previousElementSibling) load(it);
    if (found) markEntry(entries.get(`exchange-${found.id.slice(5).split("-")[0]}`));
  });
}

function onScreen() {
  const { left, width } = conversation.getBoundingClientRect();
  for (const part of [0.35, 0.5, 0.2, 0.8]) { // there is room between two
    const found = document.elementFromPoint(left + width / 2, innerHeight * part)?.closest(".exchange");
    if (found) return found;
  }
}

function markEntry(entry) {
  if (!entry || entry === here) return;
  here?.classList.remove("here");
  here = entry;
  here.classList.add("here");
  clearTimeout(moved);
  moved = setTimeout(() => { if (contents.scrollHeight > contents.clientHeight) here.scrollIntoView({ block: "nearest" }); }, 150);
}

addEventListener("scroll", look, { passive: true });
addEventListener("resize", look, { passive: true });

// ---- tools and agents

async function fill(details) {
  const address = details.dataset.src;
  if (!address || details.dataset.asked) return;
  details.dataset.asked = "1";
  const wait = document.createElement("p");
  wait.className = "loading";
  wait.textContent = "…";
  details.append(wait);
  try {
    wait.replaceWith(parse(await get(address)));
    details.removeAttribute("data-src");
  } catch {
    delete details.dataset.asked;
    wait.textContent = "This could not be loaded. Close and open it to try again.";
  }
}

conversation.addEventListener("toggle", event => {
  if (event.target.open && event.target.dataset.src) fill(event.target);
}, true);

// ---- deep links

async function show(hash) {
  const name = decodeURIComponent(hash.slice(1));
  if (!document.getElementById(name) && name.startsWith("turn-")) {
    for (const id of JSON.parse(await get(`${url}/turns/${name.slice(5)}/way`))) await open(document.getElementById(id));
  } else if (name.startsWith("exchange-")) {
    await open(document.getElementById(`part-${name.slice(9)}`));
  }
  const target = document.getElementById(name);
  if (!target) return;
  for (let it = target.closest("details"); it; it = it.parentElement.closest("details")) it.open = true;
  target.scrollIntoView({ block: "start" });
  mark(target);
  setTimeout(() => target.isConnected && target.scrollIntoView({ block: "start" }), 150); // what is above may still grow
}

function mark(target) {
  for (const it of document.querySelectorAll(".turn.at-hash")) it.classList.remove("at-hash");
  target.classList.add("at-hash");
}

async function open(element) {
  if (!element) return;
  if (element.matches("details")) {
    element.open = true;
    await fill(element);
    for (let it = element.parentElement.closest("details"); it; it = it.parentElement.closest("details")) it.open = true;
  } else await load(element);
}

addEventListener("hashchange", () => show(location.hash));

// ---- find

const field = document.querySelector("[data-find]");
const results = document.getElementById("found-here");
let asked;
field.form.addEventListener("submit", event => event.preventDefault());
field.addEventListener("input", () => {
  clearTimeout(asked);
  asked = setTimeout(async () => {
    results.replaceChildren(parse(await get(`${url}/find?q=${encodeURIComponent(field.value.trim())}`)));
  }, 150);
});

// ---- live: the end of the session stays in sight until one looks at something else, and again from its end on

const follow = document.querySelector("[data-follow]");
const words = document.getElementById("words");
let following = false;
let paused = false; // by going up
let own = 0; // when we scrolled ourselves
let last = scrollY;

const below = () => document.documentElement.scrollHeight - innerHeight - scrollY; // pixels that are not seen yet
const toEnd = () => { own = performance.now(); scrollTo({ top: document.documentElement.scrollHeight }); };

function setFollowing(on) {
  following = on;
  paused = false;
  follow.classList.toggle("on", on);
  follow.textContent = on ? "Following" : "Follow";
  if (on) toEnd();
}

function pause() {
  if (!following) return;
  setFollowing(false);
  paused = true;
}

follow.addEventListener("click", () => setFollowing(!following));
addEventListener("wheel", event => { if (event.deltaY < 0) pause(); }, { passive: true });
addEventListener("keydown", event => { if (["PageUp", "ArrowUp", "Home", "k", "K"].includes(event.key)) pause(); });
addEventListener("scroll", () => {
  const [up, down] = [scrollY < last - 5, scrollY > last + 5];
  last = scrollY;
  if (performance.now() - own < 80) return; // ours, or what our scrolling brought to its place
  if (up && below() > 60) pause(); // by finger or scroll bar
  else if (down && paused && below() < 250) setFollowing(true); // more may have come on the way down
}, { passive: true });
new ResizeObserver(() => { if (following) toEnd(); }).observe(conversation);

async function renew() {
  const id = [...conversation.querySelectorAll(":scope > .exchange")].at(-1)?.id;
  if (!id) { location.reload(); return; }
  await loading.get(id); // else it would be put in the place of one that is gone
  const tail = document.getElementById(id);
  const opened = new Set([...tail.querySelectorAll(".turn")].filter(it => it.querySelector("details[open]")).map(it => it.id));
  const fresh = parse(await get(`${url}/rest/${id.replace("part-", "")}`));
  for (const id of opened) fresh.getElementById?.(id)?.querySelectorAll("details.tool:not([data-src]), details.thought").forEach(it => { it.open = true; });
  const before = conversation.querySelectorAll(".turn:not(.speaking)").length;
  const followed = following; // what comes now is in view at once, even if the reader scrolls away before the end of this
  tail.replaceWith(fresh);
  watch(conversation);
  look();
  await renewHead();
  const more = conversation.querySelectorAll(".turn:not(.speaking)").length - before;
  if (following) toEnd();
  else if (!followed && more > 0 && below() > 60) follow.textContent = `${more} new below`;
}

async function renewHead() {
  const around = new DOMParser().parseFromString(await get(`${url}/head`), "text/html");
  for (const id of ["session-head", "toc"]) document.getElementById(id).replaceWith(around.getElementById(id));
  entries = listed();
}

// One after the other: what was said word by word goes when the turn itself is there.
let queue = Promise.resolve();
const then = step => { queue = queue.then(step).catch(() => {}); };

listen(`${url}/events?state=${reading.dataset.state}`, {
  live: () => { if (follow.hidden) { follow.hidden = false; then(renewHead); } },
  ended: () => { setFollowing(false); follow.hidden = true; then(renew); }, // what did not end is marked so now
  changed: () => { follow.hidden = false; then(renew); }, // what grows can be followed, whether its agent is known to run or not
  words: event => then(() => {
    follow.hidden = false;
    say(words, JSON.parse(event.data).html);
    if (following) toEnd();
  }),
  gone: () => { document.getElementById("gone").hidden = false; },
});

watch(document);
look();
reachable(document);
if (location.hash) show(location.hash);
