// The first page: asks the native routes and shows what comes back as text, never as markup.
"use strict";

const PAGE_SIZE = 10;
const KEY = "searchworld-key";
const at = (id) => document.getElementById(id);
const state = { query: "", mode: "hybrid", hits: [], asked: 0, opened: 0, url: "" };

class Problem extends Error {
  constructor(status, message, hint) {
    super([message, hint].filter(Boolean).join(" "));
    this.status = status;
  }
}

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

async function ask(path, body) {
  const headers = { "Content-Type": "application/json" };
  const key = sessionStorage.getItem(KEY);
  if (key) headers["X-API-KEY"] = key;
  const options = body ? { method: "POST", headers, body: JSON.stringify(body) } : { headers };
  const response = await fetch(path, options);
  const answer = await response.json();
  at("key-row").hidden = response.status !== 401;
  if (!response.ok) throw new Problem(response.status, answer.message, answer.hint);
  return answer;
}

function say(text, isAlert = false) {
  at("status").textContent = text;
  at("status").classList.toggle("alert", isAlert);
}

function remember(opened) {
  const fields = new URLSearchParams();
  if (state.query) fields.set("q", state.query);
  if (state.mode !== "hybrid") fields.set("mode", state.mode);
  if (opened) fields.set("open", opened);
  const text = fields.toString();
  history.replaceState(null, "", text ? `?${text}` : location.pathname);
}

function meter(name, value, share, rank) {
  const part = element("span", `part ${name}`);
  part.append(element("span", "", name));
  const bar = element("meter");
  bar.max = 1;
  bar.value = Math.max(0, Math.min(1, share));
  bar.title = `${name} score ${value}`;
  part.append(bar, element("span", "", value.toFixed(3)));
  if (rank) part.append(element("span", "", `#${rank}`));
  return part;
}

function isNumber(value) {
  return typeof value === "number";
}

function share(score, largest) {
  return largest ? score / largest : 0;
}

function largestScore(name) {
  return Math.max(0, ...state.hits.map((hit) => (hit.parts && hit.parts[name]) || 0));
}

function scoreParts(hit, largest) {
  const box = element("span", "parts");
  const fused = element("span", "part fused");
  fused.append(element("span", "", "score"), element("span", "", hit.score.toFixed(4)));
  box.append(fused);
  if (hit.parts) {
    const { lexical, dense, sparse, rerank } = hit.parts;
    const { lexical_rank: lexicalRank, dense_rank: denseRank, sparse_rank: sparseRank } = hit.parts;
    box.append(meter("lexical", lexical, share(lexical, largest.lexical), lexicalRank));
    if (dense > -1) box.append(meter("dense", dense, dense, denseRank));
    if (isNumber(sparse)) {
      box.append(meter("sparse", sparse, share(sparse, largest.sparse), sparseRank));
    }
    if (isNumber(rerank)) {
      const part = element("span", "part rerank");
      part.append(element("span", "", "rerank"), element("span", "", String(rerank)));
      box.append(part);
    }
  }
  return box;
}

function markOpen() {
  for (const button of document.querySelectorAll(".hit")) {
    button.setAttribute("aria-current", String(button.dataset.url === state.url));
  }
}

function showHits() {
  const largest = { lexical: largestScore("lexical"), sparse: largestScore("sparse") };
  const rows = state.hits.map((hit) => {
    const button = element("button", "hit");
    button.type = "button";
    button.dataset.url = hit.url;
    const name = element("span", "name");
    name.append(element("span", "rank", `${hit.rank}`), document.createTextNode(hit.title || hit.url));
    const place = [hit.url, hit.published ? hit.published.slice(0, 10) : "", hit.language];
    button.append(
      name,
      element("span", "place", place.filter(Boolean).join("  ·  ")),
      element("span", "snippet", hit.snippet),
      scoreParts(hit, largest),
    );
    button.addEventListener("click", () => open(hit.url));
    const row = element("li");
    row.append(button);
    return row;
  });
  at("hits").replaceChildren(...rows);
  markOpen();
}

async function search(more = false) {
  const number = ++state.asked;
  const offset = more ? state.hits.length : 0;
  say("Searching …");
  try {
    const answer = await ask("v1/search", {
      query: state.query, count: PAGE_SIZE, offset, mode: state.mode, explain: true,
    });
    if (number !== state.asked) return;
    state.hits = more ? state.hits.concat(answer.hits) : answer.hits;
    showHits();
    at("more").hidden = answer.hits.length < PAGE_SIZE;
    say(state.hits.length ? `${state.hits.length} results shown` : "The world has nothing for this query.");
  } catch (error) {
    if (number !== state.asked) return;
    if (!more) { state.hits = []; showHits(); at("more").hidden = true; }
    say(error.message, true);
  }
}

function facts(page) {
  const rows = [
    ["Published", page.published], ["Modified", page.modified], ["Captured", page.valid_from],
    ["Language", page.language], ["Page id", page.page_id],
  ].filter(([, value]) => value);
  return rows.map(([name, value]) => {
    const row = element("div");
    row.append(element("dt", "", name), element("dd", "", String(value).replace("T00:00:00Z", "")));
    return row;
  });
}

function showPage(page) {
  const missing = page.outcome === "dead_link"
    ? `The crawl recorded the error ${page.status} for this address.`
    : "This address is not in the world.";
  at("title").textContent = page.outcome === "ok" ? page.title || page.url : "No page";
  at("address").textContent = page.url;
  at("facts").replaceChildren(...facts(page));
  at("text").textContent = page.outcome === "ok" ? page.text : missing;
  const links = page.links || [];
  at("links-box").hidden = !links.length;
  at("links-box").open = false;
  at("links-count").textContent = `${links.length} links`;
  at("links").replaceChildren(...links.slice(0, 500).map((link) => {
    const button = element("button", "", link.text ? `${link.text}  ·  ${link.url}` : link.url);
    button.type = "button";
    button.addEventListener("click", () => open(link.url));
    const row = element("li");
    row.append(button);
    return row;
  }));
}

function reading(isOpen) {
  at("reader").hidden = !isOpen;
  document.querySelector("main").classList.toggle("reading", isOpen);
}

async function open(url) {
  const number = ++state.opened;
  state.url = url;
  markOpen();
  try {
    const page = await ask("v1/fetch", { url });
    if (number !== state.opened) return;
    showPage(page);
    reading(true);
    at("reader").scrollTop = 0;
    at("reader").focus({ preventScroll: true });
    remember(url);
  } catch (error) {
    if (number === state.opened) say(error.message, true);
  }
}

function close() {
  ++state.opened;
  reading(false);
  remember("");
  const current = document.querySelector('.hit[aria-current="true"]');
  (current || at("query")).focus();
}

function submit() {
  state.query = at("query").value.trim();
  state.mode = document.querySelector('input[name="mode"]:checked').value;
  if (!state.query) return;
  if (/^https?:\/\/\S+$/i.test(state.query)) {
    open(state.query);
    return;
  }
  reading(false);
  remember("");
  search();
}

function move(step) {
  const buttons = [...document.querySelectorAll(".hit")];
  if (!buttons.length) return;
  const here = buttons.indexOf(document.activeElement);
  if (here + step < 0) at("query").focus();
  else buttons[Math.min(buttons.length - 1, here + step)].focus();
}

function pressed(event) {
  const inText = event.target.matches("input[type=search], input[type=password], select");
  const inReader = at("reader").contains(event.target);
  if (event.key === "/" && !inText) {
    event.preventDefault();
    at("query").focus();
    at("query").select();
  } else if (event.key === "Escape" && !at("reader").hidden) {
    close();
  } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && !inReader
             && !event.target.matches("input[type=radio], select")) {
    event.preventDefault();
    move(event.key === "ArrowDown" ? 1 : -1);
  }
}

async function describe() {
  try {
    const { worlds } = await ask("info");
    const name = (location.pathname.match(/^\/w\/([^/]+)\//) || [])[1] || worlds[0].name;
    const world = worlds.find((one) => one.name === name) || worlds[0];
    const pages = world.counts.pages.toLocaleString("en");
    at("about").textContent =
      `${world.name}@${world.version}  ·  ${pages} pages  ·  world clock ${world.clock.slice(0, 10)}`;
    at("world").replaceChildren(...worlds.map((one) => new Option(one.name, one.name, false, one === world)));
    document.querySelector(".world").hidden = worlds.length < 2;
  } catch (error) {
    say(error.message, true);
  }
}

function start() {
  at("form").addEventListener("submit", (event) => { event.preventDefault(); submit(); });
  at("mode").addEventListener("change", () => { if (state.query) submit(); });
  at("more").addEventListener("click", () => search(true));
  at("close").addEventListener("click", close);
  at("world").addEventListener("change", () => { location.href = `/w/${at("world").value}/`; });
  at("key").addEventListener("change", () => {
    sessionStorage.setItem(KEY, at("key").value);
    describe();
    submit();
  });
  document.addEventListener("keydown", pressed);
  describe();
  const fields = new URLSearchParams(location.search);
  const mode = document.querySelector(`input[name="mode"][value="${CSS.escape(fields.get("mode") || "hybrid")}"]`);
  if (mode) mode.checked = true;
  if (fields.get("q")) {
    at("query").value = fields.get("q");
    submit();
  }
  if (fields.get("open")) open(fields.get("open"));
}

start();
