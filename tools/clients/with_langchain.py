"""langchain-openai: chat, streams, tools, structured output, by chat completions and by responses."""
import openai
from checks import *
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel

model = model_name()


class Person(BaseModel):
    """A person."""
    name: str
    age: int


@tool
def get_weather(city: str) -> str:
    """Get the weather in a city."""
    return f"sunny in {city}"


def llm(key=KEY, tokens=24, **more):
    return ChatOpenAI(model=model, base_url=BASE + "/v1", api_key=key, max_retries=0, max_tokens=tokens,
                      stream_usage=True, **more)


def chat(**more):
    answer = llm(**more).invoke("What is the capital of France?")
    assert answer.text and answer.usage_metadata["output_tokens"], answer
    return answer.text


def streamed(**more):
    whole = None
    for chunk in llm(**more).stream("What is the capital of France?"):
        whole = chunk if whole is None else whole + chunk
    assert whole.text and whole.usage_metadata["output_tokens"], whole
    return whole.text


def tools(stream=False, **more):
    bound = llm(tokens=100, **more).bind_tools([get_weather], tool_choice="get_weather")
    talk = [HumanMessage(ASK_WEATHER[0]["content"])]
    message = None
    for chunk in (bound.stream(talk) if stream else [bound.invoke(talk)]):
        message = chunk if message is None else message + chunk
    assert message.tool_calls and not message.invalid_tool_calls, message
    talk.append(message)
    talk += [ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"]) for call in message.tool_calls]
    end = llm(**more).invoke(talk)
    assert end.text, end
    return message.tool_calls[0]["args"], end.text


def structured(method, **more):
    answer = llm(tokens=200, **more).with_structured_output(Person, method=method).invoke(ASK_PERSON)
    assert isinstance(answer, Person), answer
    return answer


def structured_with_tools():
    """The model may call, or answer in the form."""
    form = llm(tokens=200).with_structured_output(Person, include_raw=True, tools=[get_weather], strict=True)
    got = form.invoke(ASK_PERSON)
    assert got["parsed"] or got["raw"].tool_calls, got
    return got["parsed"] or got["raw"].tool_calls


def cancelled():
    stream = llm(tokens=100000, extra_body={"ignore_eos": True}).stream("Count.")
    next(stream)
    stream.close()
    return until_idle()


check("chat", chat)
check("stream", streamed)
check("tools", tools)
check("tools, streamed", lambda: tools(True))
for method in ("json_schema", "function_calling"):
    check(f"structured output by {method}", lambda: structured(method))
check("structured output beside tools", structured_with_tools)
check("batch", lambda: len(llm().batch(["one", "two", "three"])))
check("responses: chat", lambda: chat(use_responses_api=True))
check("responses: stream", lambda: streamed(use_responses_api=True))
check("responses: tools", lambda: tools(use_responses_api=True))
check("responses: tools, streamed", lambda: tools(True, use_responses_api=True))
check("responses: structured output", lambda: structured("json_schema", use_responses_api=True))
check("cancel", cancelled)
check("error: too long", lambda: raised(
    openai.BadRequestError, lambda: llm().invoke("word " * 20000), "exceeds the available context size"))
check("error: wrong key", lambda: raised(openai.AuthenticationError, lambda: llm("wrong").invoke("hi"), "key"))
check("error: embeddings", lambda: raised(openai.APIStatusError, lambda: OpenAIEmbeddings(
    model=model, base_url=BASE + "/v1", api_key=KEY, max_retries=0, check_embedding_ctx_length=False)
    .embed_query("x"), "embeddings"))
