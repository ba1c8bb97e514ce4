// One message on the page, and an answer as it comes from the server.

// Shows a message; `acts` may have edit(text) and again(), which get buttons.
function show_message(message, acts) {
  const thoughts = element("div");
  const thinking = element("details", "thinking", element("summary", "", "Thinking"), thoughts);
  const body = element("div", "body");
  const figures = element("span", "quiet");
  const tools = element("div", "tools");
  const article = element("article", message.role, thinking, body, tools);
  tools.append(copy_button(() => message.content));
  if (acts.edit) tools.append(button("Edit", () => edit_message(article, message.content, acts.edit)));
  if (acts.again) tools.append(button("Regenerate", acts.again));
  tools.append(figures);
  const view = {
    article,
    update() {
      thinking.hidden = !message.reasoning_content;
      thoughts.textContent = (message.reasoning_content || "").trim();
      if (message.role === "user") body.textContent = message.content;
      else show_markdown(body, message.content);
      figures.textContent = message.figures || "";
    },
  };
  view.update();
  return view;
}

// Puts a field in the place of a message until the change is sent or given up.
function edit_message(article, text, send) {
  if (running) return say("An answer is under way: stop it first.");
  const field = element("textarea");
  field.value = text;
  field.rows = Math.min(12, text.split("\n").length + 1);
  field.setAttribute("aria-label", "Edit message");
  const before = [...article.childNodes];
  const back = () => article.replaceChildren(...before);
  const done = () => {
    if (field.value.trim()) send(field.value.trim());
  };
  const confirm = button("Send", done);
  confirm.className = "main";
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") back();
    if (!sends(event)) return;
    event.preventDefault();
    done();
  });
  article.replaceChildren(element("div", "edit", field, element("div", "tools", confirm, button("Cancel", back))));
  field.focus();
}

function sends(event) { return event.key === "Enter" && !event.shiftKey && !event.isComposing; }

// Calls back with the JSON of each event of a stream, and returns whether the stream came to its end.
async function read_events(response, each) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let held = "";
  let ended = false;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return ended;
    held += decoder.decode(value, { stream: true });
    const parts = held.split("\n\n");
    held = parts.pop();
    for (const part of parts) {
      if (part === "data: [DONE]") ended = true;
      else if (part.startsWith("data: ")) each(JSON.parse(part.slice(6)));
    }
  }
}

async function problem_of(response) {
  try {
    return (await response.json()).error.message;
  } catch {
    return `the server answered with status ${response.status}`;
  }
}

// Adds an event of the stream to the message, and returns a report of the whole where the event has one.
function take_event(message, event, context) {
  if (event.error) throw new Error(event.error.message);
  const choice = event.choices && event.choices[0];
  if (choice && choice.delta) {
    message.content += choice.delta.content || "";
    if (choice.delta.reasoning_content) message.reasoning_content = (message.reasoning_content || "") + choice.delta.reasoning_content;
  }
  if (choice && choice.finish_reason === "length") message.cut = true;
  if (!event.usage) return "";
  const speed = event.timings ? `${event.timings.predicted_per_second.toFixed(1)} tokens/s` : "";
  message.figures = [`${event.usage.completion_tokens} tokens`, speed, message.cut ? "cut at the limit" : ""].filter(Boolean).join(", ");
  const used = event.usage.total_tokens;
  return context ? `${used} of ${context} tokens of context (${Math.round((100 * used) / context)} %)` : `${used} tokens of context`;
}
