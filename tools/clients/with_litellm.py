"""litellm, by each of the protocols that it may take for a server like this one."""
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # or it asks GitHub for prices
import json

import litellm
from checks import *

litellm.suppress_debug_info = True
model = model_name()
PROVIDERS = {"openai": BASE + "/v1", "hosted_vllm": BASE + "/v1", "anthropic": BASE, "ollama_chat": BASE}


def complete(messages=QUESTION, provider="openai", key=KEY, **more):
    return litellm.completion(model=f"{provider}/{model}", api_base=PROVIDERS[provider], api_key=key, num_retries=0,
                              messages=messages, timeout=300, **{"max_tokens": 24, **more})


def whole(provider):
    answer = complete(provider=provider)
    assert answer.choices[0].message.content and answer.usage.completion_tokens, answer
    return answer.choices[0].message.content


def streamed(provider):
    chunks = list(complete(provider=provider, stream=True, stream_options={"include_usage": True}))
    built = litellm.stream_chunk_builder(chunks)
    assert built.choices[0].message.content and built.choices[0].finish_reason in ("stop", "length"), built
    assert built.usage.completion_tokens, built
    return built.choices[0].message.content


def tools(provider):
    wish = {"tools": [WEATHER], "max_tokens": 100, "provider": provider}
    insists = provider != "ollama_chat"  # whose protocol can neither insist on a call nor forbid one
    if insists:
        wish["tool_choice"] = "required"
    message = complete(ASK_WEATHER, **wish).choices[0].message
    if not message.tool_calls and not insists:
        return "no call: " + message.content
    call = message.tool_calls[0]
    assert call.function.name == "get_weather" and json.loads(call.function.arguments)["city"], message
    talk = ASK_WEATHER + [message.model_dump(exclude_none=True),
                          {"role": "tool", "tool_call_id": call.id, "content": "sunny, 21 degrees"}]
    wish["max_tokens"] = 24
    if insists:
        wish["tool_choice"] = "none"
    else:
        del wish["tools"]
    again = complete(talk, **wish).choices[0]
    assert again.message.content, again
    return again.message.content


def streamed_tools():
    chunks = list(complete(ASK_WEATHER, tools=[WEATHER], tool_choice="required", max_tokens=100, stream=True))
    choice = litellm.stream_chunk_builder(chunks).choices[0]
    assert choice.finish_reason == "tool_calls" and choice.message.tool_calls, choice
    assert json.loads(choice.message.tool_calls[0].function.arguments)["city"], choice
    return choice.message.tool_calls[0].function


def schema(provider):
    form = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON, "strict": True}}
    return is_person(complete(ASK_PERSON, provider=provider, response_format=form, max_tokens=200)
                     .choices[0].message.content)


def cancelled():
    stream = complete(stream=True, max_tokens=100000, extra_body={"ignore_eos": True})
    next(iter(stream))
    stream.completion_stream.close()
    return until_idle()


def response():
    answer = litellm.responses(model=f"openai/{model}", api_base=BASE + "/v1", api_key=KEY, input="Say OK.",
                               max_output_tokens=16)
    return answer.output[0].content[0].text


for provider in PROVIDERS:
    check(f"{provider}: chat", lambda: whole(provider))
    check(f"{provider}: stream", lambda: streamed(provider))
    check(f"{provider}: tools", lambda: tools(provider))
    check(f"{provider}: json_schema", lambda: schema(provider))
check("openai: streamed tools", streamed_tools)
check("openai: responses", response)
check("cancel", cancelled)
for provider in PROVIDERS:
    check(f"{provider}: error: wrong key", lambda: raised(
        litellm.AuthenticationError, lambda: complete(provider=provider, key="wrong"), "key"))
    kind = litellm.BadRequestError if provider == "ollama_chat" else litellm.ContextWindowExceededError
    check(f"{provider}: error: too long", lambda: raised(
        kind, lambda: complete(TOO_LONG, provider=provider), "too long"))
check("error: what is not honoured", lambda: raised(
    litellm.BadRequestError, lambda: complete(extra_body={"echo": True}), "echo"))
check("error: embeddings", lambda: raised(Exception, lambda: litellm.embedding(
    model=f"openai/{model}", api_base=BASE + "/v1", api_key=KEY, input=["x"], max_retries=0), "embeddings"))
