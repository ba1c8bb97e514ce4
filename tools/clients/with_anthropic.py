"""The anthropic client: messages, whole and streamed, tools, thinking."""
import anthropic
from checks import *
from pydantic import BaseModel

client = anthropic.Anthropic(base_url=BASE, api_key=KEY, max_retries=0, timeout=300)
model = model_name()
TOOL = {"name": "get_weather", "description": "Get the weather in a city", "input_schema": CITY}
TIME = {"name": "get_time", "description": "Get the time in a city", "input_schema": CITY}
GREEDY = {"extra_body": {"temperature": 0}}  # newer versions of the client have no argument for it


class Person(BaseModel):
    name: str
    age: int


def create(messages=QUESTION, max_tokens=24, **more):
    return client.messages.create(model=model, messages=messages, max_tokens=max_tokens, **more)


def stream(messages=QUESTION, max_tokens=24, **more):
    with client.messages.stream(model=model, messages=messages, max_tokens=max_tokens, **more) as running:
        kinds = [event.type for event in running]
        final = running.get_final_message()
    assert kinds[0] == "message_start" and kinds[-1] == "message_stop", kinds
    return final


def text_of(message):
    text = "".join(block.text for block in message.content if block.type == "text")
    assert text and message.stop_reason in ("end_turn", "max_tokens"), message
    assert message.usage.input_tokens + message.usage.cache_read_input_tokens > 0, message
    return text


def uses(message, name="get_weather"):
    found = [block for block in message.content if block.type == "tool_use"]
    assert message.stop_reason == "tool_use" and found, message
    assert all(block.name == name and block.input["city"] for block in found), found
    return found


def rounds(ask):
    talk = list(ASK_WEATHER)
    for weather in ("sunny", "rain"):
        message = ask(talk, 100, tools=[TOOL], tool_choice={"type": "any"})
        talk.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in message.content]})
        talk.append({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": block.id, "content": [{"type": "text", "text": weather}]}
            for block in uses(message)]})
    return text_of(ask(talk, tools=[TOOL], tool_choice={"type": "none"}))


def choices():
    uses(create(ASK_WEATHER, 100, tools=[TOOL, TIME], tool_choice={"type": "tool", "name": "get_time"}), "get_time")
    found = uses(create(ASK_WEATHER, 100, tools=[TOOL], tool_choice={"type": "any", "disable_parallel_tool_use": True}))
    assert len(found) == 1, found
    message = create(ASK_WEATHER, 100, tools=[TOOL], tool_choice={"type": "auto"})
    assert (message.stop_reason == "tool_use") == any(block.type == "tool_use" for block in message.content), message
    return message.content


def thinking():
    message = stream(max_tokens=2000, thinking={"type": "enabled", "budget_tokens": 1024}, stop_sequences=["."])
    return [block.type for block in message.content], message.stop_reason


def parsed():
    message = client.messages.parse(model=model, messages=ASK_PERSON, max_tokens=200, output_format=Person)
    assert isinstance(message.parsed_output, Person), message
    return message.parsed_output


def stopped():
    text = text_of(create(**GREEDY))
    stop = text[5:8]
    message = create(stop_sequences=["never\0", stop], **GREEDY)
    assert message.stop_reason == "stop_sequence" and message.stop_sequence == stop, message
    return stop


def cancelled():
    with client.messages.stream(model=model, messages=QUESTION, max_tokens=100000,
                                extra_body={"ignore_eos": True}) as running:
        next(iter(running.text_stream))
    return until_idle()


def counted():
    count = client.messages.count_tokens(model=model, messages=QUESTION).input_tokens
    usage = create().usage
    assert count == usage.input_tokens + usage.cache_read_input_tokens, (count, usage)
    return count


def wrong_key():
    other = anthropic.Anthropic(base_url=BASE, api_key="wrong", max_retries=0)
    return raised(anthropic.AuthenticationError,
                  lambda: other.messages.create(model=model, max_tokens=5, messages=QUESTION), "key")


image = [{"role": "user", "content": [
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}]}]

check("models", lambda: [client.models.retrieve(entry.id).display_name for entry in client.models.list()])
check("message", lambda: text_of(create(system="Be brief.", **GREEDY)))
check("stream helper", lambda: text_of(stream()))
check("tools: two rounds", lambda: rounds(create))
check("tools: two rounds of streams", lambda: rounds(stream))
check("tools: tool_choice forms", choices)
check("thinking, streamed", thinking)
check("parse a pydantic model", parsed)
check("stop_sequences", stopped)
check("begun answer", lambda: text_of(create(QUESTION + [{"role": "assistant", "content": "The capital of"}])))
check("system message within", lambda: text_of(create(QUESTION + [{"role": "system", "content": "Be brief."}])))
check("count_tokens", counted)
check("cancel", cancelled)
check("error: image", lambda: raised(anthropic.BadRequestError, lambda: create(image), "image"))
check("error: too long", lambda: raised(anthropic.BadRequestError, lambda: create(TOO_LONG), "prompt is too long"))
check("error: no such model", lambda: raised(anthropic.NotFoundError, lambda: client.models.retrieve("none"), "none"))
check("error: wrong key", wrong_key)
check("eight at once", lambda: sum(message.usage.output_tokens for message in at_once(8, lambda i: create())))
