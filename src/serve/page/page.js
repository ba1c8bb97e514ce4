// A chat with the model of this server. What a model writes is only ever set as text, never as HTML.
"use strict";
const at = (id) => document.getElementById(id);
const kept = "redline-chat";
let messages = JSON.parse(localStorage.getItem(kept) || "[]");
let running = null;

function keep() { localStorage.setItem(kept, JSON.stringify(messages)); }

function headers() {
  const key = at("key").value;
  return { "Content-Type": "application/json", ...(key ? { Authorization: "Bearer " + key } : {}) };
}

// One message on the page, with functions that add to its text and to its reasoning.
function show(role, text, reasoning) {
  const article = document.createElement("article");
  article.className = role;
  const details = document.createElement("details");
  const summary = document.createElement("summary");
  summary.textContent = "Thinking";
  const thoughts = document.createTextNode("");
  details.append(summary, thoughts);
  details.hidden = true;
  const body = document.createTextNode("");
  article.append(details, body);
  at("talk").append(article);
  const shown = {
    say(more) { body.appendData(more); follow(); },
    think(more) { details.hidden = false; thoughts.appendData(more); follow(); },
  };
  if (reasoning) shown.think(reasoning);
  shown.say(text);
  return shown;
}

function follow() {
  const talk = at("talk");
  if (talk.scrollHeight - talk.scrollTop - talk.clientHeight < 150) talk.scrollTop = talk.scrollHeight;
}

// Calls back with the JSON of each event of a stream.
async function events(response, each) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let held = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    held += decoder.decode(value, { stream: true });
    const parts = held.split("\n\n");
    held = parts.pop();
    for (const part of parts)
      if (part.startsWith("data: ") && part !== "data: [DONE]") each(JSON.parse(part.slice(6)));
  }
}

function request() {
  const system = at("system").value.trim();
  const body = {
    messages: [...(system ? [{ role: "system", content: system }] : []), ...messages],
    stream: true,
    stream_options: { include_usage: true },
  };
  if (at("temperature").value !== "") body.temperature = Number(at("temperature").value);
  if (at("tokens").value !== "") body.max_tokens = Number(at("tokens").value);
  return JSON.stringify(body);
}

async function answer() {
  running = new AbortController();
  at("send").hidden = true;
  at("stop").hidden = false;
  const shown = show("assistant", "");
  const message = { role: "assistant", content: "", reasoning_content: "" };
  const take = (event) => {
    if (event.error) throw new Error(event.error.message);
    const delta = event.choices.length ? event.choices[0].delta : {};
    if (delta.reasoning_content) { message.reasoning_content += delta.reasoning_content; shown.think(delta.reasoning_content); }
    if (delta.content) { message.content += delta.content; shown.say(delta.content); }
    if (event.timings) at("state").textContent =
      `${event.usage.total_tokens} tokens of context, ${event.timings.predicted_per_second.toFixed(1)} tokens/s`;
  };
  try {
    const response = await fetch("v1/chat/completions", { method: "POST", headers: headers(), body: request(), signal: running.signal });
    if (!response.ok) throw new Error((await response.json()).error.message);
    await events(response, take);
  } catch (problem) {
    if (problem.name !== "AbortError") show("error", problem.message);
  }
  if (!message.reasoning_content) delete message.reasoning_content;
  if (message.content || message.reasoning_content) messages.push(message);
  keep();
  running = null;
  at("send").hidden = false;
  at("stop").hidden = true;
}

at("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = at("text").value.trim();
  if (!text || running) return;
  at("text").value = "";
  messages.push({ role: "user", content: text });
  show("user", text);
  keep();
  answer();
});
at("text").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  at("form").requestSubmit();
});
at("stop").addEventListener("click", () => running && running.abort());
at("fresh").addEventListener("click", () => {
  if (running) running.abort();
  messages = [];
  keep();
  at("talk").textContent = "";
});
for (const message of messages) show(message.role, message.content, message.reasoning_content);
fetch("v1/models", { headers: headers() }).then((response) => response.json()).then((list) => {
  if (list.data) at("model").textContent = list.data[0].id;
});
