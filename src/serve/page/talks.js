// Conversations and settings as this browser keeps them. Each conversation has an entry, so that two tabs lose none.
const kTalk = "redline-talk-";
const kSettings = "redline-settings";

function stored(key) {
  try {
    return JSON.parse(localStorage.getItem(key));
  } catch {
    return null;
  }
}

// False where the browser has no room, or keeps nothing.
function store(key, value) {
  try {
    localStorage.setItem(key, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

function new_talk() {
  return { id: `${Date.now().toString(36)}${Math.floor(Math.random() * 1e9).toString(36)}`, changed: Date.now(), messages: [] };
}

// All conversations that can be read, the latest first.
function stored_talks() {
  const talks = [];
  for (const key of Object.keys(localStorage)) {
    const talk = key.startsWith(kTalk) ? stored(key) : null;
    if (talk && talk.id && Array.isArray(talk.messages)) talks.push(talk);
  }
  return talks.sort((a, b) => b.changed - a.changed);
}

function store_talk(talk) { return !talk.messages.length || store(kTalk + talk.id, talk); }

function delete_talk(talk) { localStorage.removeItem(kTalk + talk.id); }

function talk_name(talk) {
  const first = talk.messages.find((message) => message.role === "user");
  const words = first ? first.content.trim().split(/\s+/).slice(0, 8).join(" ") : "";
  return words.length > 48 ? words.slice(0, 47) + "…" : words || "New conversation";
}

function talk_as_markdown(talk, system) {
  const parts = [`# ${talk_name(talk)}`];
  if (system) parts.push("## System", system);
  for (const message of talk.messages) {
    parts.push(message.role === "user" ? "## User" : "## Assistant");
    if (message.reasoning_content) parts.push(message.reasoning_content.trim().replace(/^/gm, "> "));
    parts.push(message.content);
  }
  return parts.join("\n\n") + "\n";
}

function talk_as_json(talk, system) {
  const messages = talk.messages.map(plain_message);
  return JSON.stringify({ name: talk_name(talk), messages: system ? [{ role: "system", content: system }, ...messages] : messages }, null, 2);
}

// The members of a message that requests have.
function plain_message({ role, content, reasoning_content }) {
  return reasoning_content ? { role, content, reasoning_content } : { role, content };
}

function download(name, type, text) {
  const anchor = element("a");
  anchor.href = URL.createObjectURL(new Blob([text], { type }));
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 1000);
}
