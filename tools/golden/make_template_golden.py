#!/usr/bin/env python3
"""Writes what jinja2, with the settings of Hugging Face's transformers, makes of templates.

usage: tools/golden/make_template_golden.py FOLDER_OF_TEMPLATES

tests/golden/text/jinja_language.json: templates for single features of the language, from template_cases.py.
tests/golden/text/chat_templates.json: conversations as the published chat templates of the folder write them; the
templates themselves are their makers' and are not part of the file.
"""
import datetime
import json
import os
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox

from template_cases import CONVERSATIONS, SOURCES, VARIABLES

BOS, EOS = "<|the-bos|>", "<|the-eos|>"
NOW = datetime.datetime(2026, 11, 21)


class Generation(jinja2.ext.Extension):
    """{% generation %}: the text inside it, as transformers' AssistantTracker writes it."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_text"), [], [], body).set_lineno(line)

    def _text(self, caller):
        return caller()


def refuse(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def make_environment():
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = NOW.strftime
    return environment


def render(environment, source, variables):
    """The text, or None where jinja2 refuses."""
    try:
        return environment.from_string(source).render(**variables)
    except (jinja2.exceptions.TemplateError, TypeError, ValueError, ZeroDivisionError, OverflowError, KeyError,
            AttributeError, IndexError, SyntaxError):
        return None


def write(name, golden):
    path = os.path.join(os.path.dirname(__file__), "..", "..", "tests", "golden", "text", name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(golden, file, ensure_ascii=False, indent=1)
        file.write("\n")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    environment = make_environment()
    write("jinja_language.json",
          {"variables": VARIABLES,
           "cases": [{"source": source, "text": render(environment, source, VARIABLES)} for source in SOURCES]})
    templates = []
    for file_name in sorted(os.listdir(sys.argv[1])):
        if not file_name.endswith(".jinja"):
            continue
        with open(os.path.join(sys.argv[1], file_name), encoding="utf-8") as file:
            source = file.read()
        common = {"bos_token": BOS, "eos_token": EOS, "add_generation_prompt": True, "tools": None, "documents": None}
        templates.append({"template": file_name,
                          "texts": [render(environment, source, {**common, **variables})
                                    for variables in CONVERSATIONS.values()]})
    write("chat_templates.json", {"bos": BOS, "eos": EOS, "conversations": CONVERSATIONS, "templates": templates})


if __name__ == "__main__":
    main()
