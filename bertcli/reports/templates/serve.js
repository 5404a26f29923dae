/* Asks without loading the page anew, sends the key, and keeps the texts behind the # of the address. */
const KEY = "bertcli-key";
const PATH = "/v1/bertcli/page";
const form = () => element("ask");
let asking = new AbortController();

/* The HTML that the server answers; an error has its message, and its status as the cause. */
async function fetched(path, options = {}) {
  const key = sessionStorage.getItem(KEY);
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  let response;
  try {
    response = await fetch(path, { headers, ...options });
  } catch (error) {
    throw error.name === "AbortError" ? error : new Error("the server does not answer; is it still there?");
  }
  const text = await response.text();
  if (response.ok) return text;
  if (response.status === 401) unlock(key ? "This is not the key." : "");
  let message = `the server answers with status ${response.status}`;
  try {
    message = JSON.parse(text).error ?? message;
  } catch {} // something between us and the server answered
  throw new Error(message, { cause: response.status });
}

function unlock(problem) {
  sessionStorage.removeItem(KEY);
  element("unlock").hidden = false;
  element("key-problem").textContent = problem;
  element("key").focus();
}

async function useKey(event) {
  event.preventDefault();
  sessionStorage.setItem(KEY, element("key").value);
  element("unlock").hidden = true;
  if (form()) ask();
  else await showForm();
}

/* Shows the form of the model that the address names. It is there already, unless a key is needed. */
async function showForm() {
  if (!form()) {
    if (!sessionStorage.getItem(KEY)) return unlock("");
    try {
      element("asked").innerHTML = await fetched(PATH + location.search);
    } catch (error) {
      if (error.cause !== 401) say(error.message);
      return;
    }
  }
  form().addEventListener("submit", (event) => {
    event.preventDefault();
    ask();
  });
  form().addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form().requestSubmit();
  });
  element("shortcut").hidden = false;
  fillFromAddress();
}

/* Fills the form by a link that someone sent; asks if nothing is missing. */
function fillFromAddress() {
  if (location.hash.length < 2) return;
  const given = new URLSearchParams(location.hash.slice(1));
  for (const name of ["text", "lines"]) {
    const values = given.getAll(name);
    form().querySelectorAll(`textarea[name="${name}"]`).forEach((field, at) => (field.value = values[at] ?? ""));
  }
  for (const box of form().querySelectorAll('[name="show"]')) box.checked = given.getAll("show").includes(box.value);
  if (form().checkValidity()) ask();
}

/* Writes the texts into the address, and into the links to the other forms. */
function keepInAddress(fields) {
  const kept = new URLSearchParams([...fields].filter(([name]) => !["model", "form"].includes(name)));
  history.replaceState(null, "", `#${kept}`);
  element("link").href = location.href;
  for (const link of document.querySelectorAll("nav a")) link.hash = kept;
}

/* Asks for the answer, then for each part that is to be shown with it: these take longer. */
async function ask() {
  asking.abort();
  const { signal } = (asking = new AbortController());
  const fields = new URLSearchParams(new FormData(form()));
  keepInAddress(fields);
  const [answer, ...others] = ["answer", ...fields.getAll("show")];
  fields.delete("show");
  const part = async (name) => {
    fields.set("part", name);
    return fetched(PATH, { method: "POST", body: fields, signal });
  };
  mark("");
  say("Computing…");
  element("answers").ariaBusy = true;
  try {
    showAnswer(await part(answer));
    for (const name of others) {
      element("answers").append(make("p", { id: "pending", className: "quiet" }, "Computing…"));
      showPart(await part(name));
    }
  } catch (error) {
    if (error.name !== "AbortError") showError(error);
  }
}

function showAnswer(html) {
  element("answers").innerHTML = html;
  element("answers").ariaBusy = false;
  element("share").hidden = false;
  say(element("answers").querySelector("[data-said]").dataset.said, true);
}

function showPart(html) {
  element("pending").remove();
  element("answers").insertAdjacentHTML("beforeend", html);
  const grid = element("grid");
  if (grid && !grid.childElementCount) drawAttention(JSON.parse(element("data").textContent));
}

function showError(error) {
  if (element("pending")) {
    element("pending").textContent = error.message;
    return;
  }
  element("answers").replaceChildren();
  element("answers").ariaBusy = false;
  say("");
  if (error.cause !== 401) mark(error.message, [413, 422].includes(error.cause));
}

/* Says a text, aloud too; what else is on the page need not be seen twice. */
function say(text, isSeen = false) {
  element("said").textContent = text;
  element("said").classList.toggle("unseen", isSeen);
}

/* Shows a problem beside the fields; "" is none. */
function mark(problem, isOfFields = false) {
  element("problem").textContent = problem;
  const fields = [...form().querySelectorAll("textarea")];
  for (const field of fields) field.ariaInvalid = isOfFields;
  if (isOfFields) fields[0].focus();
}

element("unlock").addEventListener("submit", useKey);
addEventListener("hashchange", () => form() && fillFromAddress());
showForm();
