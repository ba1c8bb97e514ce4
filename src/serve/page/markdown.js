// Markdown as DOM nodes. All text enters by text nodes, so that nothing that a model writes can be HTML.
"use strict";

// Quotes, lists and emphasis nested deeper than this stay text, which bounds the recursion.
const kDeepest = 12;

function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

function button(text, act, label) {
  const made = element("button", "", text);
  made.type = "button";
  if (label) made.setAttribute("aria-label", label);
  made.addEventListener("click", act);
  return made;
}

function copy_button(text) {
  const made = button("Copy", async () => {
    try {
      await navigator.clipboard.writeText(text());
      made.textContent = "Copied";
    } catch {
      made.textContent = "The browser refused";
    }
    setTimeout(() => { made.textContent = "Copy"; }, 1500);
  });
  return made;
}

// A link, or its text where the address is not one of the web or of mail.
function link(address, children) {
  if (!/^(https?:\/\/|mailto:)[^\s\u0000-\u001f]+$/i.test(address)) return element("span", "", ...children, ` (${address})`);
  const made = element("a", "", ...children);
  made.href = address;
  made.target = "_blank";
  made.rel = "noopener noreferrer";
  return made;
}

const kInline = [
  [/\\([!-/:-@[-`{-~])/y, (found) => found[1]],
  [/(`+)(?!`)([^`]{1,4000})\1(?!`)/y, (found) => element("code", "", found[2].replace(/^ (.*[^ ].*) $/, "$1"))],
  [/!?\[([^[\]]{0,1000})\]\(([^\s()]{0,2000}(?:\([^\s()]{0,500}\)[^\s()]{0,500})?)(?: "[^"\n]{0,500}")?\)/y,
    (found, depth) => link(found[2], inline(found[1], depth + 1))],
  [/<?(https?:\/\/[^\s<>"'`|]{0,1999}[^\s<>"'`|.,:;!?)\]*_])>?/iy, (found) => link(found[1], [found[1]])],
  [/(\*\*|__)(?=\S)((?:(?!\1)[^]){1,4000}?\S?)\1(?!\w)/y, (found, depth) => element("strong", "", ...inline(found[2], depth + 1))],
  [/~~(?=\S)([^~]{1,2000})~~/y, (found, depth) => element("del", "", ...inline(found[1], depth + 1))],
  [/([*_])(?=[^\s*_])((?:\*\*[^*]{1,500}\*\*|(?!\1)[^]){1,2000})\1(?!\w)/y,
    (found, depth) => element("em", "", ...inline(found[2], depth + 1))],
];

// The nodes and strings of one paragraph's text.
function inline(text, depth = 0) {
  const parts = [];
  let from = 0;
  let tries = 20000;
  const special = /[\\`![<*_~h]/gi;
  while (depth < kDeepest && tries > 0) {
    const next = special.exec(text);
    if (!next) break;
    const at = next.index;
    // An underscore or the h of an address within a word begins nothing.
    if (/[_h]/i.test(next[0]) && at > 0 && /\w/.test(text[at - 1])) continue;
    for (const [pattern, make] of kInline) {
      pattern.lastIndex = at;
      const found = pattern.exec(text);
      tries -= 1;
      if (!found) continue;
      // Set before `make`, which may use the same pattern.
      const end = pattern.lastIndex;
      parts.push(text.slice(from, at), make(found, depth));
      from = special.lastIndex = end;
      break;
    }
  }
  parts.push(text.slice(from));
  return parts.filter((part) => part !== "");
}

const kFence = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const kHeading = /^ {0,3}(#{1,6})(?:\s+(.*))?$/;
const kRule = /^ {0,3}([-*_])(?: *\1){2,} *$/;
const kQuote = /^ {0,3}> ?/;
const kItem = /^( *)([-*+]|(\d{1,9})[.)])(?: +|$)/;

function cells(line) {
  const parts = line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/);
  return parts.map((part) => part.trim().replaceAll("\\|", "|"));
}

function divides_table(line) {
  return line !== undefined && line.includes("-") && line.includes("|") && cells(line).every((cell) => /^:?-+:?$/.test(cell));
}

function begins_block(lines, at) {
  const line = lines[at];
  return [kFence, kHeading, kRule, kQuote, kItem].some((pattern) => pattern.test(line)) ||
    (line.includes("|") && divides_table(lines[at + 1]));
}

// The line behind the last of a list that begins at `from`.
function end_of_list(lines, from) {
  const [, indent, mark] = kItem.exec(lines[from]);
  const kind = mark.slice(-1);
  let at = from + 1;
  for (; at < lines.length; ++at) {
    const line = lines[at];
    if (!line.trim()) continue;
    const item = kItem.exec(line);
    const deep = line.search(/\S/) > indent.length;
    if (deep || (item && item[2].slice(-1) === kind && !kRule.test(line))) continue;
    if (!lines[at - 1].trim() || begins_block(lines, at)) break;
  }
  while (at > from + 1 && !lines[at - 1].trim()) --at;
  return at;
}

function end_of_fence(lines, from) {
  const mark = kFence.exec(lines[from])[1];
  for (let at = from + 1; at < lines.length; ++at) {
    const line = lines[at].trim();
    if (line.length >= mark.length && line === mark[0].repeat(line.length)) return at + 1;
  }
  return lines.length;
}

function end_of_block(lines, from) {
  const line = lines[from];
  if (kFence.test(line)) return end_of_fence(lines, from);
  if (kHeading.test(line) || kRule.test(line)) return from + 1;
  let at = from + 1;
  if (kQuote.test(line)) {
    while (at < lines.length && kQuote.test(lines[at])) ++at;
    return at;
  }
  if (kItem.test(line)) return end_of_list(lines, from);
  if (line.includes("|") && divides_table(lines[at])) {
    while (at < lines.length && lines[at].includes("|")) ++at;
    return at;
  }
  while (at < lines.length && lines[at].trim() && !begins_block(lines, at)) ++at;
  return at;
}

// The texts of the blocks that follow each other, each a list of lines.
function blocks(lines) {
  const found = [];
  for (let at = 0; at < lines.length;) {
    if (!lines[at].trim()) {
      ++at;
      continue;
    }
    const end = end_of_block(lines, at);
    found.push(lines.slice(at, end));
    at = end;
  }
  return found;
}

function code_block(lines) {
  const [, mark, language] = kFence.exec(lines[0]);
  const last = lines[lines.length - 1].trim();
  const closed = lines.length > 1 && last.length >= mark.length && last === mark[0].repeat(last.length);
  const text = lines.slice(1, closed ? -1 : undefined).join("\n");
  const head = element("div", "", element("span", "quiet", language.trim()), copy_button(() => text));
  return element("div", "code", head, element("pre", "", element("code", "", text)));
}

function table_block(lines) {
  const sides = cells(lines[1]).map((cell) => (cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "right") : ""));
  const row = (line, name) =>
    element("tr", "", ...cells(line).slice(0, sides.length).map((cell, i) => element(name, sides[i], ...inline(cell))));
  const body = element("tbody", "", ...lines.slice(2).map((line) => row(line, "td")));
  return element("div", "table", element("table", "", element("thead", "", row(lines[0], "th")), body));
}

function list_block(lines, depth) {
  const [, indent, , number] = kItem.exec(lines[0]);
  const list = element(number === undefined ? "ul" : "ol");
  if (number !== undefined) list.start = Number(number);
  let item = [];
  const close = () => list.append(element("li", "", ...block_nodes(item, depth + 1)));
  lines.forEach((line, i) => {
    const begin = kItem.exec(line);
    if (begin && begin[1].length <= indent.length + 1) {
      if (i > 0) close();
      item = [line.slice(begin[0].length)];
    } else {
      // Lines of an item lose the indent of its text, or what there is of it.
      const width = indent.length + 2 + (number === undefined ? 0 : number.length);
      item.push(line.slice(Math.min(Math.max(line.search(/\S/), 0), width)));
    }
  });
  close();
  return list;
}

function block_node(lines, depth) {
  const line = lines[0];
  if (kFence.test(line)) return code_block(lines);
  const heading = kHeading.exec(line);
  if (heading) return element("h" + heading[1].length, "", ...inline((heading[2] || "").replace(/\s#+\s*$/, "")));
  if (kRule.test(line)) return element("hr");
  if (depth < kDeepest && kQuote.test(line))
    return element("blockquote", "", ...block_nodes(lines.map((quoted) => quoted.replace(kQuote, "")), depth + 1));
  if (depth < kDeepest && kItem.test(line)) return list_block(lines, depth);
  if (line.includes("|") && divides_table(lines[1])) return table_block(lines);
  return element("p", "", ...inline(lines.join("\n")));
}

function block_nodes(lines, depth) {
  return blocks(lines).map((block) => block_node(block, depth));
}

// Shows `text` in `place`. Blocks that have not changed stay as they are, so that an answer that grows costs only its last one.
function show_markdown(place, text) {
  const sources = blocks(text.replaceAll("\r\n", "\n").replaceAll("\t", "    ").split("\n"));
  const shown = place.sources || [];
  let same = 0;
  while (same < sources.length && same < shown.length && sources[same].join("\n") === shown[same].join("\n")) ++same;
  while (place.childNodes.length > same) place.lastChild.remove();
  for (const source of sources.slice(same)) place.append(block_node(source, 0));
  place.sources = sources;
}
