"""The openai client: chat, completions, responses, and the helpers that put streams together."""
import json

import openai
from checks import *
from pydantic import BaseModel

client = openai.OpenAI(base_url=BASE + "/v1", api_key=KEY, max_retries=0, timeout=300)
model = model_name()
named = {"type": "function", "function": {"name": "get_weather"}}
TIME = {"type": "function", "function": {"name": "get_time", "parameters": CITY}}


class Person(BaseModel):
    name: str
    age: int


def chat(messages=QUESTION, max_tokens=24, **more):
    return client.chat.completions.create(model=model, messages=messages, max_tokens=max_tokens, **more)


def streamed():
    text, finish, usage = "", None, None
    for chunk in chat(stream=True, stream_options={"include_usage": True}):
        assert not usage, "a chunk after the usage"
        if chunk.choices:
            text += chunk.choices[0].delta.content or ""
            finish = chunk.choices[0].finish_reason or finish
        usage = chunk.usage
    assert text and finish in ("stop", "length"), (text, finish)
    assert usage and usage.total_tokens == usage.prompt_tokens + usage.completion_tokens, usage
    return finish, usage.total_tokens, text


def no_usage_unasked():
    assert all(chunk.usage is None and chunk.choices for chunk in chat(stream=True))


def helper():
    with client.chat.completions.stream(model=model, messages=QUESTION, max_tokens=24) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion()
    assert "content.delta" in kinds and "content.done" in kinds, kinds
    return final.choices[0].message.content


def calls_of(answer, name="get_weather"):
    choice = answer.choices[0]
    assert choice.finish_reason == "tool_calls" and choice.message.tool_calls, choice
    for call in choice.message.tool_calls:
        assert call.function.name == name and json.loads(call.function.arguments)["city"], call
    return choice.message


def two_rounds(**more):
    talk = list(ASK_WEATHER)
    for weather in ("sunny, 21 degrees", "rain, 9 degrees"):
        message = calls_of(chat(talk, tools=[WEATHER], tool_choice="required", max_tokens=100, temperature=0, **more))
        talk.append(message.model_dump(exclude_none=True))
        talk += [{"role": "tool", "tool_call_id": call.id, "content": weather} for call in message.tool_calls]
    ids = [call["id"] for message in talk for call in message.get("tool_calls", [])]
    assert len(ids) == len(set(ids)), ids
    end = chat(talk, tools=[WEATHER], tool_choice="none").choices[0]
    assert end.message.content and not end.message.tool_calls, end
    return end.message.content


def automatic():
    choice = chat(ASK_WEATHER, tools=[WEATHER, TIME], tool_choice="auto", max_tokens=100, temperature=0).choices[0]
    assert bool(choice.message.tool_calls) == (choice.finish_reason == "tool_calls"), choice
    assert choice.message.tool_calls or choice.message.content, choice
    return choice.message.tool_calls or choice.message.content


def streamed_calls():
    with client.chat.completions.stream(model=model, messages=ASK_WEATHER, tools=[WEATHER], tool_choice="required",
                                        max_tokens=100, temperature=0) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion()
    assert "tool_calls.function.arguments.done" in kinds, kinds
    return calls_of(final).tool_calls[0].function.arguments


def allowed_calls():
    some = [{"type": "function", "function": {"name": "get_time"}}]
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": some}}
    return calls_of(chat(ASK_WEATHER, tools=[WEATHER, TIME], tool_choice=choice, max_tokens=100), "get_time").tool_calls


def one_call_only():
    answer = chat(ASK_WEATHER, tools=[WEATHER], tool_choice="required", parallel_tool_calls=False, max_tokens=100)
    calls = calls_of(answer).tool_calls
    assert len(calls) == 1, calls
    return calls


def tools_and_schema():
    """Agents send both: the answer is a call or JSON of the schema."""
    schema = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON, "strict": True}}
    choice = chat(ASK_PERSON, tools=[WEATHER], response_format=schema, max_tokens=100, temperature=0).choices[0]
    assert bool(choice.message.tool_calls) == (choice.finish_reason == "tool_calls"), choice
    return choice.message.tool_calls or is_person(choice.message.content)


def parsed():
    answer = client.chat.completions.parse(model=model, messages=ASK_PERSON, response_format=Person,
                                           max_tokens=200, temperature=0).choices[0].message
    assert isinstance(answer.parsed, Person), answer
    return answer.parsed


def by_format(**form):
    return chat(ASK_PERSON, response_format=form, max_tokens=200, temperature=0).choices[0].message.content


def streamed_logprobs():
    entries, text = [], ""
    for chunk in chat(stream=True, logprobs=True, top_logprobs=3, max_tokens=8):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            entries += choice.logprobs.content if choice.logprobs else []
    assert 0 < len(entries) <= 8 and all(len(entry.top_logprobs) == 3 for entry in entries), entries
    whole = b"".join(bytes(entry.bytes) for entry in entries).decode()
    assert text in whole, (text, whole)
    return whole


def several():
    story = [{"role": "user", "content": "Write a short story."}]
    answers = [choice.message.content for choice in chat(story, n=3, seed=1, temperature=1.5, max_tokens=16).choices]
    assert len(answers) == 3 and len(set(answers)) > 1, answers
    ends = [choice.index for chunk in chat(n=2, stream=True, max_tokens=8) for choice in chunk.choices
            if choice.finish_reason]
    assert sorted(ends) == [0, 1], ends
    return answers


def stopped():
    whole = chat(temperature=0, max_tokens=24).choices[0].message.content
    stop = whole[5:8]
    choice = chat(temperature=0, max_tokens=24, stop=["never\0", stop]).choices[0]
    assert choice.finish_reason == "stop" and choice.message.content == whole[:whole.index(stop)], (whole, choice)
    return choice.message.content


def biased():
    first = post("/tokenize", {"content": "yes"})["tokens"][0]
    text = chat(logit_bias={str(first): 100}, max_tokens=3, temperature=0).choices[0].message.content
    assert text == 3 * post("/detokenize", {"tokens": [first]})["content"], text
    return text


def seeded():
    texts = [chat(seed=7, temperature=1).choices[0].message.content for _ in range(2)]
    assert texts[0] == texts[1], texts
    return texts[0]


def completions():
    answer = client.completions.create(model=model, prompt=["Once upon a time", "The sun"], max_tokens=6, logprobs=2)
    assert [choice.index for choice in answer.choices] == [0, 1], answer
    assert len(answer.choices[0].logprobs.tokens) == len(answer.choices[0].logprobs.top_logprobs), answer
    stream = client.completions.create(model=model, prompt="Once", max_tokens=6, stream=True)
    return "".join(chunk.choices[0].text for chunk in stream if chunk.choices)


def responded():
    answer = client.responses.create(model=model, input="What is 2+2?", max_output_tokens=16, instructions="Be brief.")
    assert answer.output_text and answer.usage.total_tokens and answer.status in ("completed", "incomplete"), answer
    assert (answer.status == "incomplete") == (answer.incomplete_details is not None), answer
    return answer.status, answer.output_text


def respond_stream(**more):
    """The final object of the helper, which raises on any event that is out of order, and on an answer that was cut."""
    with client.responses.stream(model=model, **more) as stream:
        events = list(stream)
        final = stream.get_final_response()
    numbers = [event.sequence_number for event in events]
    assert numbers == sorted(numbers) and events[0].type == "response.created", numbers
    assert events[-1].type == f"response.{final.status}", events[-1].type
    return final


def responded_stream():
    final = respond_stream(input="Say OK.", max_output_tokens=200)
    assert final.output_text, final
    return final.output_text


def flat(tool):
    return {"type": "function", "strict": False, **tool["function"]}


def response_rounds(stream):
    talk = list(ASK_WEATHER)
    for weather in ("sunny", "rain"):
        wish = {"input": talk, "tools": [flat(WEATHER)], "tool_choice": "required", "max_output_tokens": 100}
        answer = respond_stream(**wish) if stream else client.responses.create(model=model, **wish)
        calls = [item for item in answer.output if item.type == "function_call"]
        assert calls and json.loads(calls[0].arguments)["city"], answer
        talk += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in answer.output]
        talk += [{"type": "function_call_output", "call_id": call.call_id, "output": weather} for call in calls]
    end = client.responses.create(model=model, input=talk, max_output_tokens=20)
    assert end.output_text, end
    return end.output_text


def response_choices():
    wish = {"model": model, "input": ASK_WEATHER, "tools": [flat(WEATHER), flat(TIME)], "max_output_tokens": 100}
    answer = client.responses.create(tool_choice={"type": "function", "name": "get_time"}, **wish)
    assert [item.name for item in answer.output if item.type == "function_call"] == ["get_time"], answer
    answer = client.responses.create(tool_choice="none", parallel_tool_calls=False, **wish)
    assert not [item for item in answer.output if item.type == "function_call"], answer
    return answer.output_text


def response_parsed():
    answer = client.responses.parse(model=model, input=ASK_PERSON, text_format=Person, max_output_tokens=200)
    assert isinstance(answer.output_parsed, Person), answer
    final = respond_stream(input=ASK_PERSON, text_format=Person, max_output_tokens=200)
    assert isinstance(final.output_parsed, Person), final
    return answer.output_parsed


def response_logprobs():
    answer = client.responses.create(model=model, input="Say OK.", max_output_tokens=8, top_logprobs=2)
    entries = answer.output[0].content[0].logprobs
    assert 0 < len(entries) <= 8 and all(len(entry.top_logprobs) == 2 for entry in entries), answer
    final = respond_stream(input="Say OK.", max_output_tokens=200, include=["message.output_text.logprobs"])
    assert final.output[0].content[0].logprobs, final
    return len(entries)


def cancelled():
    stream = chat(stream=True, max_tokens=100000, extra_body={"ignore_eos": True})
    next(iter(stream))
    stream.close()
    return until_idle()


def too_long():
    """Agents shorten their conversation when they see one of these words."""
    try:
        chat(TOO_LONG)
    except openai.BadRequestError as problem:
        assert problem.body["type"] == "exceed_context_size_error" and problem.body["n_ctx"], problem.body
        assert "exceeds the available context size" in problem.body["message"], problem.body
        return problem.body["message"]
    raise AssertionError("no error")


def wrong_key():
    other = openai.OpenAI(base_url=BASE + "/v1", api_key="wrong", max_retries=0)
    return raised(openai.AuthenticationError, lambda: other.chat.completions.create(model=model, messages=QUESTION),
                  "key")


def many():
    answers = at_once(8, lambda i: chat([{"role": "user", "content": f"Count from {i}."}], max_tokens=12))
    return sum(answer.usage.completion_tokens for answer in answers)


check("models", lambda: [client.models.retrieve(entry.id).id for entry in client.models.list()])
check("chat", lambda: chat(temperature=0).choices[0].message.content)
check("stream, usage where it is asked for", streamed)
check("stream, no usage unasked", no_usage_unasked)
check("stream helper", helper)
check("tools: two rounds", two_rounds)
check("tools: named", lambda: calls_of(chat(ASK_WEATHER, tools=[TIME, WEATHER], tool_choice=named, max_tokens=100)))
check("tools: allowed_tools", allowed_calls)
check("tools: auto", automatic)
check("tools: stream helper", streamed_calls)
check("tools: parallel_tool_calls false", one_call_only)
check("tools and json_schema", tools_and_schema)
check("parse a pydantic model", parsed)
check("json_schema, strict", lambda: is_person(by_format(
    type="json_schema", json_schema={"name": "person", "schema": PERSON, "strict": True})))
check("json_object", lambda: json.loads(by_format(type="json_object")))
check("logprobs in a stream", streamed_logprobs)
check("n, whole and streamed", several)
check("stop list", stopped)
check("logit_bias", biased)
check("seed", seeded)
check("completions", completions)
check("responses", responded)
check("responses: stream helper", responded_stream)
check("responses: tools, two rounds", lambda: response_rounds(False))
check("responses: tools, two rounds of streams", lambda: response_rounds(True))
check("responses: tool_choice forms", response_choices)
check("responses: parse", response_parsed)
check("responses: logprobs", response_logprobs)
check("cancel", cancelled)
check("error: what is not honoured", lambda: raised(openai.BadRequestError, lambda: chat(extra_body={"echo": True}), "echo"))
check("error: too long", too_long)
check("error: no such model", lambda: raised(openai.NotFoundError, lambda: client.models.retrieve("none"), "none"))
check("error: wrong key", wrong_key)
check("error: embeddings", lambda: raised(
    openai.APIStatusError, lambda: client.embeddings.create(model=model, input="x"), "501", "embeddings"))
check("eight at once", many)
