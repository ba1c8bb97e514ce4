// The page: the list of conversations, the one that is shown, the settings, and the answer under way.
const at = (id) => document.getElementById(id);
const kTextSettings = ["system", "temperature", "top_p", "top_k", "min_p", "seed", "max_tokens"];
let talk = new_talk();
let running = null;  // The answer under way: its conversation, message, view and controller.
let contexts = {};   // Tokens of context by model.

function say(text) { at("state").textContent = text; }

function keep(kept) {
  kept.changed = Date.now();
  if (!store_talk(kept)) say("The browser has no room for this conversation: delete others.");
}

function follow(always) {
  const main = at("talk");
  if (always || main.scrollHeight - main.scrollTop - main.clientHeight < 150) main.scrollTop = main.scrollHeight;
}

function list_talks() {
  const rows = stored_talks().map((each) => {
    const name = button(talk_name(each), () => open_talk(each));
    name.className = "name";
    const remove = button("✕", () => remove_talk(each), `Delete ${talk_name(each)}`);
    remove.className = "delete";
    const row = element("li", each.id === talk.id ? "current" : "", name, remove);
    if (each.id === talk.id) name.setAttribute("aria-current", "true");
    return row;
  });
  at("talks").replaceChildren(...rows);
}

function open_talk(chosen) {
  // The conversation that an answer comes into is the one in memory, which is ahead of the stored one.
  talk = running && running.talk.id === chosen.id ? running.talk : chosen;
  sessionStorage.setItem("redline-current", talk.id);
  show_side(false);
  draw();
  list_talks();
  at("text").focus();
}

function remove_talk(gone) {
  if (!confirm(`Delete “${talk_name(gone)}”?`)) return;
  if (running && running.talk.id === gone.id) {
    running.gone = true;
    running.controller.abort();
  }
  delete_talk(gone);
  if (gone.id === talk.id) open_talk(new_talk());
  list_talks();
}

function draw() {
  const views = talk.messages.map((message, i) => {
    const acts = {};
    if (message.role === "user") acts.edit = (text) => send_again(i, [{ role: "user", content: text }]);
    else acts.again = () => send_again(i, []);
    const view = show_message(message, acts);
    if (running && message === running.message) running.view = view;
    return view.article;
  });
  at("talk").replaceChildren(...views);
  say(talk.context || "");
  follow(true);
}

// Cuts the conversation before message `i`, adds `messages` and asks for an answer.
function send_again(i, messages) {
  if (running) return say("An answer is under way: stop it first.");
  talk.messages.splice(i, Infinity, ...messages);
  answer();
}

function headers() {
  const key = at("key").value;
  return { "Content-Type": "application/json", ...(key ? { Authorization: "Bearer " + key } : {}) };
}

function request(messages) {
  const system = at("system").value.trim();
  const body = {
    messages: [...(system ? [{ role: "system", content: system }] : []), ...messages.map(plain_message)],
    stream: true,
    stream_options: { include_usage: true },
  };
  if (at("models").value) body.model = at("models").value;
  for (const name of kTextSettings.slice(1)) if (at(name).value !== "") body[name] = Number(at(name).value);
  return JSON.stringify(body);
}

function show_running() {
  at("send").hidden = running !== null;
  at("stop").hidden = running === null;
}

// Draws the running answer at most once for each frame of the screen.
function update_soon(now) {
  if (now.drawing) return;
  now.drawing = true;
  requestAnimationFrame(() => {
    now.drawing = false;
    if (now.talk !== talk || !now.view) return;
    now.view.update();
    follow();
  });
}

async function receive(now, body) {
  const model = at("models").value;
  const response = await fetch("v1/chat/completions", { method: "POST", headers: headers(), body, signal: now.controller.signal });
  if (!response.ok) throw new Error(await problem_of(response));
  const ended = await read_events(response, (event) => {
    const report = take_event(now.message, event, contexts[model]);
    if (report) now.talk.context = report;
    update_soon(now);
  });
  if (!ended) throw new Error("the answer broke off: the server closed the connection");
}

async function answer() {
  const body = request(talk.messages);
  const now = { talk, message: { role: "assistant", content: "" }, controller: new AbortController() };
  running = now;
  talk.messages.push(now.message);
  talk.context = "";
  keep(talk);
  list_talks();
  draw();
  show_running();
  say("Answering…");
  let problem = null;
  try {
    await receive(now, body);
  } catch (caught) {
    if (caught.name !== "AbortError") problem = caught instanceof TypeError ? "the server cannot be reached" : caught.message;
    else now.message.figures = "stopped";
  }
  running = null;
  show_running();
  if (!now.message.content && !now.message.reasoning_content) now.talk.messages.pop();
  if (!now.gone) keep(now.talk);
  list_talks();
  if (now.talk !== talk) return;
  draw();
  if (problem) {
    at("talk").append(element("article", "error", problem, " ", button("Try again", () => send_again(talk.messages.length, []))));
    follow(true);
  }
}

function show_side(open) {
  at("side").classList.toggle("open", open);
  at("menu").setAttribute("aria-expanded", String(open));
}

function show_models(list) {
  for (const model of list) contexts[model.id] = model.meta && model.meta.n_ctx;
  at("models").replaceChildren(...list.map((model) => new Option(model.id, model.id)));
  const wish = (stored(kSettings) || {}).model;
  if (list.some((model) => model.id === wish)) at("models").value = wish;
  at("models").hidden = list.length < 2;
  at("model").hidden = list.length > 1;
  if (list.length === 1) at("model").textContent = list[0].id;
}

async function read_models() {
  try {
    const response = await fetch("v1/models", { headers: headers() });
    if (response.ok) show_models((await response.json()).data || []);
    else say(`${await problem_of(response)}${response.status === 401 ? " (Settings has a field for the key)" : ""}`);
  } catch {
    say("the server cannot be reached");
  }
}

function keep_settings() {
  const settings = { model: at("models").value };
  for (const name of kTextSettings) settings[name] = at(name).value;
  store(kSettings, settings);
  sessionStorage.setItem("redline-key", at("key").value);
}

function read_settings() {
  const settings = stored(kSettings) || {};
  for (const name of kTextSettings) at(name).value = settings[name] || "";
  at("key").value = sessionStorage.getItem("redline-key") || "";
}

function export_talk(kind, type, text) {
  download(`${talk_name(talk).replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") || "conversation"}.${kind}`, type, text);
}

function listen() {
  at("form").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = at("text").value.trim();
    if (!text || running) return;
    at("text").value = "";
    send_again(talk.messages.length, [{ role: "user", content: text }]);
  });
  at("text").addEventListener("keydown", (event) => {
    if (!sends(event)) return;
    event.preventDefault();
    at("form").requestSubmit();
  });
  at("stop").addEventListener("click", () => running && running.controller.abort());
  at("fresh").addEventListener("click", () => open_talk(new_talk()));
  at("menu").addEventListener("click", () => show_side(!at("side").classList.contains("open")));
  at("room").addEventListener("click", (event) => event.target !== at("menu") && show_side(false));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || document.querySelector("dialog[open]")) return;
    show_side(false);
    if (running && !event.target.closest(".edit")) running.controller.abort();
  });
  at("settings").addEventListener("click", () => at("settings-box").showModal());
  at("export").addEventListener("click", () => at("export-box").showModal());
  at("settings-box").addEventListener("close", () => {
    keep_settings();
    read_models();
  });
  at("models").addEventListener("change", keep_settings);
  const system = () => at("system").value.trim();
  at("as-markdown").addEventListener("click", () => export_talk("md", "text/markdown", talk_as_markdown(talk, system())));
  at("as-json").addEventListener("click", () => export_talk("json", "application/json", talk_as_json(talk, system())));
  addEventListener("storage", list_talks);
  addEventListener("pagehide", () => running && keep(running.talk));
}

read_settings();
listen();
talk = stored_talks().find((each) => each.id === sessionStorage.getItem("redline-current")) || talk;
sessionStorage.setItem("redline-current", talk.id);
draw();
list_talks();
read_models();
