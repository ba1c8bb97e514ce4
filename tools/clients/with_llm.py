"""llm with its plugin llm-llama-server, whose models have the address of this server in place of port 8080."""
import json
import os
import tempfile

os.environ["LLM_USER_PATH"] = tempfile.mkdtemp(prefix="redline_llm_")
import llm
from checks import *


def plugin(name="llama-server", key=KEY):
    model = llm.get_model(name)
    model.api_base, model.key = BASE + "/v1", key
    return model


def ask(text="What is the capital of France?", name="llama-server", **more):
    return plugin(name).prompt(text, **{"max_tokens": 24, **more})


def streamed():
    parts = list(ask(stream=True))
    assert "".join(parts), parts
    return "".join(parts)


def whole():
    response = ask(stream=False)
    assert response.text() and response.usage().output, response.usage()
    return response.text()


def seeded():
    texts = [ask(seed=3, temperature=1).text() for _ in range(2)]
    assert texts[0] == texts[1], texts
    return texts[0]


def conversation():
    talk = plugin().conversation()
    talk.prompt("My name is Ada.", max_tokens=16).text()
    return talk.prompt("What is my name?", max_tokens=16).text()


def get_weather(city: str) -> str:
    """Get the weather in a city."""
    return f"sunny in {city}"


def tools():
    """The plugin leaves the choice to the model."""
    response = ask(ASK_WEATHER[0]["content"], "llama-server-tools", tools=[get_weather], max_tokens=100, temperature=0)
    calls, text = response.tool_calls(), response.text()
    assert calls or text, response
    if not calls:
        return "no call: " + text
    results = [result.output for result in response.execute_tool_calls()]
    assert "sunny" in results[0], results
    return response.reply().text() if hasattr(response, "reply") else results


def schema():
    model = plugin()
    model.supports_schema = True  # which the plugin does not say of llama-server
    return is_person(model.prompt(ASK_PERSON[0]["content"], schema=PERSON, max_tokens=200).text())


check("chat", whole)
check("stream", streamed)
check("conversation", conversation)
check("tools", tools)
check("json_schema", schema)
check("json_object", lambda: json.loads(ask(ASK_PERSON[0]["content"], json_object=True, max_tokens=200).text()))
check("seed", seeded)
check("error: too long", lambda: raised(Exception, lambda: ask("word " * 20000).text(),
                                        "exceeds the available context size"))
check("error: wrong key", lambda: raised(Exception, lambda: plugin(key="wrong").prompt("hi").text(), "key"))
