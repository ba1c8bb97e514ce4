"""Shared by the checks of all clients: the server's address, questions, and the record of what passed.

A file of checks is run by the Python that has its client, with the server's address and key:
    PYTHON with_openai.py http://127.0.0.1:8080 KEY
It prints a line of JSON for each check; test-clients makes a table of them.
"""
import json
import sys
import threading
import time
import urllib.error
import urllib.request

BASE, KEY = (sys.argv + ["", ""])[1:3]
QUESTION = [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}]
ASK_WEATHER = [{"role": "user", "content": "What is the weather in Berlin? Use the tool."}]
CITY = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}}, "required": ["city"]}
WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Get the current weather in a city", "parameters": CITY}}
PERSON = {"type": "object", "additionalProperties": False, "required": ["name", "age"], "properties": {
    "name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0, "maximum": 120}}}
ASK_PERSON = [{"role": "user", "content": "Ada is 36 years old. Give her name and age as JSON."}]
TOO_LONG = [{"role": "user", "content": "word " * 20000}]


def check(name, run):
    """Runs one check and prints its line: what it returns is shown, and any exception is a failure."""
    began = time.time()
    line = {"check": name, "ok": True}
    try:
        line["said"] = str(run())[:200]
    except Exception as problem:  # of whichever kind a client raises
        line.update(ok=False, said=f"{type(problem).__name__}: {str(problem)[:600]}")
    line["seconds"] = round(time.time() - began, 2)
    print(json.dumps(line), flush=True)
    return line["ok"]


def raised(kind, run, *words):
    """The message of the exception of this kind that `run` has to raise; all words have to be in it."""
    try:
        got = run()
    except kind as problem:
        missing = [word for word in words if word not in str(problem)]
        assert not missing, f"{missing} not in: {problem}"
        return f"{type(problem).__name__}: {problem}"
    raise AssertionError(f"no {kind.__name__}, but {str(got)[:200]}")


def get(path, base=None, key=None):
    request = urllib.request.Request((base or BASE) + path, headers={"Authorization": f"Bearer {key or KEY}"})
    return urllib.request.urlopen(request, timeout=30)


def post(path, body, base=None):
    request = urllib.request.Request((base or BASE) + path, json.dumps(body).encode(), {
        "Authorization": f"Bearer {KEY}", "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=1800) as answer:
        return json.load(answer)


def model_name():
    with get("/v1/models") as answer:
        return json.load(answer)["data"][0]["id"]


def until_idle(seconds=60):
    """Waits until the server computes nothing, as it has to soon after the only client has gone."""
    for _ in range(seconds * 10):
        with get("/slots") as answer:
            if not any(slot["is_processing"] for slot in json.load(answer)):
                return "ended"
        time.sleep(0.1)
    raise AssertionError(f"the server still computes after {seconds} s")


def is_person(value):
    value = json.loads(value) if isinstance(value, str) else value
    assert set(value) == {"name", "age"} and isinstance(value["age"], int) and 0 <= value["age"] <= 120, value
    return value


def at_once(count, run):
    """run(0) to run(count - 1), each in a thread; the first exception is raised again."""
    results, problems = [None] * count, []

    def one(i):
        try:
            results[i] = run(i)
        except Exception as problem:
            problems.append(problem)
    threads = [threading.Thread(target=one, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
    return results
