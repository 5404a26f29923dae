"use strict";
/* Draws one head at a time. A weight comes as a byte, 255 times its square root: [layers, heads, tokens, tokens]. */
let data, bytes, size;
let MEAN; // the number of the mean of all heads, after their own
const FAINTEST = 0.02; // share of the strongest line; a fainter line is not drawn
const MOST_LINES = 1500;
const IN_TABLE = 12;
const SVG = "http://www.w3.org/2000/svg";

const element = (id) => document.getElementById(id);
const percent = (weight) => (weight < 0.005 ? "<1%" : `${Math.round(100 * weight)}%`);
const state = { layer: 0, head: 0, pointed: null, focused: null };
let units = []; // what is shown: words or pieces, with or without special tokens
let rows = []; // the middle of each unit, in heights of a row
let tables = new Map(); // weights between the shown units, by layer and head

function make(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function chooseUnits() {
  const pieces = element("pieces")?.checked;
  units = data.units
    .filter((unit) => !unit.special || element("special").checked)
    .flatMap((unit) => {
      if (!pieces) return [unit];
      const texts = data.tokens.slice(unit.start, unit.stop);
      return texts.map((text, at) => ({ ...unit, text, start: unit.start + at, stop: unit.start + at + 1 }));
    });
  tables = new Map();
}

/* How much each unit attends to each other one. */
function table(layer, head) {
  const key = `${layer},${head}`;
  if (!tables.has(key)) tables.set(key, head === MEAN ? meanOfHeads(layer) : ofHead(layer, head));
  return tables.get(key);
}

/* The mean over a unit's tokens of the sum over the other's tokens. */
function ofHead(layer, head) {
  const first = (layer * data.heads + head) * size * size;
  return units.map((query) =>
    units.map((key) => {
      let sum = 0;
      for (let row = query.start; row < query.stop; row++)
        for (let column = key.start; column < key.stop; column++) sum += (bytes[first + row * size + column] / 255) ** 2;
      return Math.min(1, sum / (query.stop - query.start));
    }),
  );
}

function meanOfHeads(layer) {
  const heads = Array.from({ length: data.heads }, (_, head) => table(layer, head));
  return units.map((_, query) => units.map((_, key) => heads.reduce((sum, each) => sum + each[query][key] / heads.length, 0)));
}

/* The links of the chosen head, the strongest first; only those of one word, if it is pointed at. */
function linksOf(isolated) {
  const links = table(state.layer, state.head).flatMap((weights, query) => weights.map((weight, key) => ({ queries: query, keys: key, weight })));
  return links
    .filter((link) => !isolated || link[isolated.side] === isolated.at)
    .sort((one, other) => other.weight - one.weight);
}

/* Both columns of words. The second text begins after a gap. */
function drawWords() {
  const second = units.findIndex((unit) => unit.second);
  rows = units.map((_, at) => at + 0.5 + (second > 0 && at >= second ? 1 : 0));
  const height = rows.length ? rows[rows.length - 1] + 0.5 : 0;
  element("view").style.setProperty("--rows", height);
  element("lines").setAttribute("viewBox", `0 0 100 ${height}`);
  for (const side of ["queries", "keys"]) {
    element(side).replaceChildren(
      ...units.map((unit, at) => {
        const button = make("button", { type: "button", title: unit.text, dir: "auto", tabIndex: at ? -1 : 0 }, make("bdi", {}, unit.text));
        button.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && isolate({ pointed: { side, at } }));
        button.addEventListener("pointerleave", () => isolate({ pointed: null }));
        button.addEventListener("click", () => button.focus()); // Safari gives buttons no focus by itself
        button.addEventListener("focus", () => isolate({ focused: { side, at } }));
        button.addEventListener("blur", () => isolate({ focused: null }));
        return make("li", { className: `${unit.special ? "special" : ""} ${second > 0 && at === second ? "second" : ""}` }, button);
      }),
    );
  }
}

function isolate(change) {
  Object.assign(state, change);
  if (element("lines")) draw(); // a word may lose the focus because the page takes it away
}

function drawLines(links) {
  const strongest = links.length ? links[0].weight : 0;
  const shown = links.filter((link) => link.weight > FAINTEST * strongest).slice(0, MOST_LINES);
  element("lines").replaceChildren(
    ...shown.reverse().map(({ queries, keys, weight }) => {
      const path = document.createElementNS(SVG, "path");
      path.setAttribute("d", `M0 ${rows[queries]} C40 ${rows[queries]} 60 ${rows[keys]} 100 ${rows[keys]}`);
      path.setAttribute("stroke-opacity", (weight / strongest).toFixed(3));
      path.setAttribute("stroke-width", (1 + 2 * weight).toFixed(2));
      return path;
    }),
  );
}

/* Marks for an isolated word: its own place, and on the other side the weight of each word. */
function markWords(links, isolated) {
  for (const side of ["queries", "keys"]) {
    const isOwn = isolated?.side === side;
    const of = new Map(isolated && !isOwn ? links.map((link) => [link[side], link.weight]) : []);
    [...element(side).children].forEach((item, at) => {
      const weight = of.get(at) ?? 0;
      item.classList.toggle("chosen", isOwn && isolated.at === at);
      item.classList.toggle("faint", isOwn && isolated.at !== at);
      item.style.setProperty("--share", weight);
      if (weight >= 0.01) item.firstChild.dataset.weight = percent(weight);
      else delete item.firstChild.dataset.weight;
    });
  }
}

function drawTable() {
  const cell = (unit) => make("td", { className: "name" }, make("bdi", {}, unit.text));
  const body = linksOf(null).slice(0, IN_TABLE).map(({ queries, keys, weight }) =>
    make("tr", {}, cell(units[queries]), cell(units[keys]), make("td", { className: "number" }, percent(weight))),
  );
  element("links").tBodies[0].replaceChildren(...body);
  element("links").caption.textContent = `Strongest links, layer ${data.layers[state.layer]}, ${headName()}`;
}

const headName = () => (state.head === MEAN ? "mean of all heads" : `head ${state.head}`);

function describe(links, isolated) {
  const quoted = (unit) => `“${unit.text}”`;
  if (isolated) {
    const other = isolated.side === "keys" ? "queries" : "keys";
    const listed = links.slice(0, 3).map((link) => `${quoted(units[link[other]])} ${percent(link.weight)}`);
    return `${quoted(units[isolated.at])} ${isolated.side === "keys" ? "gets attention from" : "attends to"} ${listed.join(", ")}.`;
  }
  const where = `Layer ${data.layers[state.layer]}, ${headName()}.`;
  if (!links.length) return `${where} No words.`;
  const [{ queries, keys, weight }] = links;
  const hidden = 1 - links.reduce((sum, link) => sum + link.weight, 0) / units.length;
  const rest = element("special").checked ? "" : ` Special tokens, which are hidden, get ${percent(Math.max(0, hidden))} of the attention of the words.`;
  return `${where} Strongest line: ${quoted(units[queries])} attends to ${quoted(units[keys])}, ${percent(weight)}.${rest}`;
}

function draw() {
  const isolated = state.pointed ?? state.focused;
  const links = linksOf(isolated);
  drawLines(links);
  markWords(links, isolated);
  element("status").textContent = describe(links, isolated);
}

/* The grid of all heads: a small picture for each, colored where the weight is large. */
function makeGrid() {
  const grid = element("grid");
  grid.style.gridTemplateColumns = `auto repeat(${data.heads + 1}, minmax(0, 1fr))`;
  const label = (text, title) => make("span", { textContent: text, title, ariaHidden: "true" });
  const mean = label("mean", "mean of all heads");
  mean.style.justifySelf = "end";
  grid.append(label("", ""), ...Array.from({ length: data.heads }, (_, head) => label(head, `head ${head}`)), mean);
  data.layers.forEach((number, layer) => {
    grid.append(label(number, `layer ${number}`));
    for (let head = 0; head <= MEAN; head++) {
      const name = `layer ${number}, ${head === MEAN ? "mean of all heads" : `head ${head}`}`;
      const button = make("button", { type: "button", title: name, ariaLabel: name }, make("canvas"));
      button.setAttribute("role", "radio");
      button.addEventListener("click", () => select(layer, head));
      grid.append(button);
    }
  });
}

const cells = () => [...element("grid").querySelectorAll("button")];

function drawGrid() {
  const context = make("canvas").getContext("2d");
  context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--accent");
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(context.fillStyle.slice(at, at + 2), 16));
  cells().forEach((button, number) => {
    const weights = table(Math.floor(number / (MEAN + 1)), number % (MEAN + 1)).flat();
    const largest = weights.reduce((most, weight) => Math.max(most, weight), 1e-9);
    const side = Math.max(1, units.length);
    const image = new ImageData(side, side);
    weights.forEach((weight, at) => image.data.set([red, green, blue, 255 * Math.sqrt(weight / largest)], 4 * at));
    Object.assign(button.firstChild, { width: side, height: side });
    button.firstChild.getContext("2d").putImageData(image, 0, 0);
  });
}

function select(layer, head) {
  Object.assign(state, { layer, head });
  element("layer").value = layer;
  element("head").value = head;
  cells().forEach((button, number) => {
    const isChosen = number === layer * (MEAN + 1) + head;
    button.setAttribute("aria-checked", isChosen);
    button.tabIndex = isChosen ? 0 : -1;
  });
  drawTable();
  draw();
}

function showUnits() {
  Object.assign(state, { pointed: null, focused: null });
  chooseUnits();
  drawWords();
  drawGrid();
  select(state.layer, state.head);
}

/* Arrow keys move to the next word in a column of words, and to the next head or layer in the grid. */
function follow(event) {
  const column = ["queries", "keys"].map(element).find((each) => each?.contains(event.target));
  const inGrid = element("grid")?.contains(event.target);
  if (column && event.key === "Escape") event.target.blur();
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
  if (!steps || !(column || inGrid)) return;
  event.preventDefault();
  if (inGrid) {
    const bounded = (value, count) => Math.min(count - 1, Math.max(0, value));
    select(bounded(state.layer + steps[0], data.layers.length), bounded(state.head + steps[1], MEAN + 1));
    cells().find((button) => button.tabIndex === 0).focus();
    return;
  }
  const sides = { ArrowLeft: "queries", ArrowRight: "keys" };
  const at = [...column.children].indexOf(event.target.parentElement) + steps[0];
  const next = element(sides[event.key] ?? column.id).children[at]?.firstChild;
  if (!next) return;
  event.target.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

/* Fills the section of the heads, which is in the page, from its data. */
function drawAttention(given) {
  data = given;
  bytes = Uint8Array.from(atob(data.values), (letter) => letter.charCodeAt(0));
  size = data.tokens.length;
  MEAN = data.heads;
  [state.layer, state.head] = data.first;
  data.layers.forEach((number, layer) => element("layer").append(make("option", { value: layer }, number)));
  for (let head = 0; head < MEAN; head++) element("head").append(make("option", { value: head }, head));
  element("head").append(make("option", { value: MEAN }, "mean of all"));
  for (const id of ["layer", "head"])
    element(id).addEventListener("change", () => select(Number(element("layer").value), Number(element("head").value)));
  for (const id of ["special", "pieces"]) element(id)?.addEventListener("change", showUnits);
  document.querySelector(".controls").hidden = false;
  makeGrid();
  showUnits();
}

document.addEventListener("keydown", follow);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => element("grid") && drawGrid());
if (element("data")) drawAttention(JSON.parse(element("data").textContent));
