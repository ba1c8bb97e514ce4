"""The ollama client: /api/chat, /api/generate and the lists of models."""
import ollama
from checks import *

client = ollama.Client(host=BASE, timeout=300, headers={"Authorization": f"Bearer {KEY}"})
model = model_name()


def chat(messages=QUESTION, tokens=24, options={}, **more):
    return client.chat(model, messages=messages, options={"num_predict": tokens, **options}, **more)


def streamed(parts, text):
    parts = list(parts)
    assert parts[-1].done and parts[-1].eval_count and parts[-1].done_reason in ("stop", "length"), parts[-1]
    assert not any(part.done for part in parts[:-1]), parts
    return "".join(text(part) or "" for part in parts)


def tools():
    """This API cannot insist on a call, so the model may answer in words."""
    talk = list(ASK_WEATHER)
    message = chat(talk, 100, {"temperature": 0}, tools=[WEATHER]).message
    talk.append(message.model_dump(exclude_none=True))
    for call in message.tool_calls or []:
        assert call.function.name == "get_weather" and call.function.arguments["city"], call
        talk.append({"role": "tool", "tool_name": "get_weather", "content": "sunny"})
    if not message.tool_calls:
        return "no call: " + message.content
    return streamed(chat(talk, tools=[WEATHER], stream=True), lambda part: part.message.content)


def by_python_function():
    def get_weather(city: str) -> str:
        """Get the weather.

        Args:
            city: the name of a city
        """
    message = chat(ASK_WEATHER, 100, {"temperature": 0}, tools=[get_weather]).message
    return message.tool_calls or message.content


def cancelled():
    stream = chat(tokens=-1, options={"ignore_eos": True}, stream=True)
    next(stream)
    stream.close()
    return until_idle()


def stopped():
    text = chat(options={"temperature": 0}).message.content
    part = chat(options={"temperature": 0, "stop": [text[5:8]]})
    assert part.message.content == text[:text.index(text[5:8])] and part.done_reason == "stop", part
    return part.message.content


def seeded():
    texts = [chat(options={"seed": 5, "temperature": 1}).message.content for _ in range(2)]
    assert texts[0] == texts[1], texts
    return texts[0]


def error(run, status, *words):
    text = raised(ollama.ResponseError, run, *words)
    assert f"(status code: {status})" in text, text
    return text


check("list, ps, show", lambda: (client.list().models[0].model, client.ps().models[0].model,
                                 client.show(model).capabilities))
check("chat", lambda: chat().message.content)
check("chat stream", lambda: streamed(chat(stream=True), lambda part: part.message.content))
check("generate", lambda: client.generate(model, "Say hi", options={"num_predict": 10}).response)
check("generate stream", lambda: streamed(
    client.generate(model, "Say hi", stream=True, options={"num_predict": 10}), lambda part: part.response))
check("tools", tools)
check("tools from a Python function", by_python_function)
check("format: schema", lambda: is_person(chat(ASK_PERSON, 200, {"temperature": 0}, format=PERSON).message.content))
check("format: json", lambda: json.loads(chat(ASK_PERSON, 200, {"temperature": 0}, format="json").message.content))
check("logprobs", lambda: len(chat(tokens=4, logprobs=True, top_logprobs=2).logprobs))
check("stop", stopped)
check("seed", seeded)
check("think off", lambda: chat(think=False).message.content)
check("cancel", cancelled)
check("error: num_ctx", lambda: error(lambda: chat(options={"num_ctx": 10000000}), 400, "num_ctx"))
check("error: too long", lambda: error(lambda: chat(TOO_LONG), 400, "too long"))
check("error: wrong key", lambda: error(lambda: ollama.Client(host=BASE, headers={
    "Authorization": "Bearer wrong"}).chat(model, messages=QUESTION), 401, "key"))
check("error: embeddings", lambda: error(lambda: client.embed(model, "x"), 501, "embeddings"))
check("error: pull", lambda: error(lambda: client.pull("none"), 501))
