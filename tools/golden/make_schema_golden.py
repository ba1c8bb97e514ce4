#!/usr/bin/env python3
"""Writes tests/golden/text/pydantic_schemas.json: JSON schemas that pydantic and msgspec write for types of Python, with
values of the types as these packages write them, and values that they refuse.

usage: tools/golden/make_schema_golden.py                          writes the file
       tools/golden/make_schema_golden.py --check REDLINE MODEL    generates three texts for each schema with a model, at a high
                                                            temperature, and validates them with jsonschema

Needs pydantic, msgspec and jsonschema. The order of keys is that of the schema.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Annotated, Any, Generic, List, Literal, NamedTuple, Optional, TypeVar, Union
from uuid import UUID

import jsonschema
import msgspec
from pydantic import (AnyUrl, BaseModel, ConfigDict, Field, HttpUrl, NonNegativeInt, PositiveFloat, RootModel, SecretStr,
                      StringConstraints, TypeAdapter, conint, conlist)
from typing_extensions import TypedDict

PATH = os.path.join(os.path.dirname(__file__), "..", "..", "tests", "golden", "text", "pydantic_schemas.json")


class Colour(str, Enum):
    red = "red"
    green = "green"
    odd = 'a "quoted" one'


class Level(IntEnum):
    low = 1
    high = 10


class Plain(BaseModel):
    name: str
    age: int
    weight: float
    alive: bool


class Optionals(BaseModel):
    """Fields that may be left out, be null, or both."""
    a: Optional[int] = None
    b: Optional[str]
    c: list[int] = []
    d: dict[str, float] = Field(default_factory=dict, description="by name")
    e: Literal["x", 1, True] = "x"


class Bounds(BaseModel):
    port: conint(ge=1, le=65535)
    even: Annotated[int, Field(multiple_of=2, gt=-10, lt=10)]
    share: Annotated[float, Field(ge=0, le=1)]
    count: NonNegativeInt
    size: PositiveFloat
    step: Annotated[Decimal, Field(max_digits=6, decimal_places=2)]


class Texts(BaseModel):
    code: Annotated[str, StringConstraints(pattern=r"^[A-Z]{2}-\d{3,5}$")]
    title: Annotated[str, StringConstraints(min_length=1, max_length=20)]
    slug: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(?:-[a-z0-9]+)*$", max_length=12)]
    secret: SecretStr = SecretStr("")


class Formats(BaseModel):
    day: date
    at: datetime
    clock: time
    span: timedelta
    id: UUID
    four: IPv4Address
    six: IPv6Address
    site: HttpUrl
    any: AnyUrl
    file: Path


class Lists(BaseModel):
    pair: tuple[int, str]
    many: tuple[float, ...]
    few: conlist(int, min_length=1, max_length=3)
    kinds: set[Colour]
    nested: list[list[Optional[bool]]]


class Maps(BaseModel):
    scores: dict[str, int]
    flags: dict[Literal["a", "b"], bool]
    codes: dict[Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")], float]
    inner: dict[str, dict[str, list[int]]]


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog", "hound"]
    good: bool


class Parrot(BaseModel):
    kind: Literal["parrot"]
    words: list[str]


class Zoo(BaseModel):
    pets: list[Annotated[Union[Cat, Dog, Parrot], Field(discriminator="kind")]]
    main: Union[Cat, Dog]


class Mixed(BaseModel):
    value: Union[int, str, list[str], None]
    number: Union[float, Literal["auto"]]
    key: Union[UUID, int]


class Tree(BaseModel):
    value: int
    children: list["Tree"] = []


class Linked(BaseModel):
    item: str
    next: Optional["Linked"] = None


class Sum(BaseModel):
    left: "Expression"
    op: Literal["+"]
    right: "Expression"


class Product(BaseModel):
    left: "Expression"
    op: Literal["*"]
    right: "Expression"


class Expression(RootModel):
    root: Union[float, Sum, Product]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int
    b: Plain


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, int]
    a: int


class Aliased(BaseModel):
    first_name: str = Field(alias="firstName")
    odd: int = Field(alias="odd/key~\"é")


class Point(NamedTuple):
    x: float
    y: float


class Movie(TypedDict, total=False):
    title: str
    year: int


@dataclass
class Part:
    name: str
    tags: List[str] = field(default_factory=list)


class Nested(BaseModel):
    movie: Movie
    point: Point
    part: Part
    colour: Colour
    level: Level
    anything: Any = None


T = TypeVar("T")


class Page(BaseModel, Generic[T]):
    items: list[T]
    total: int


class Base(BaseModel):
    id: int


class Derived(Base):
    id: Annotated[int, Field(gt=0)]
    extra: Optional[Base] = None


class Step(BaseModel):
    explanation: str
    output: str


class Reasoning(BaseModel):
    steps: list[Step]
    final_answer: str


class Address(BaseModel):
    street: str
    zip: Annotated[str, StringConstraints(pattern=r"^\d{5}$")]


class Item(BaseModel):
    sku: str
    quantity: Annotated[int, Field(ge=1)]
    price: float


class Order(BaseModel):
    model_config = ConfigDict(title="Order", json_schema_extra={"examples": [{"id": 1}]})
    id: int
    ship_to: Address
    bill_to: Optional[Address] = None
    items: Annotated[list[Item], Field(min_length=1)]
    status: Literal["new", "paid", "sent"] = "new"


class Search(BaseModel):
    tool: Literal["search"]
    query: str


class Weather(BaseModel):
    tool: Literal["weather"]
    city: str
    days: Annotated[int, Field(ge=1, le=7)] = 1


class Answer(BaseModel):
    tool: Literal["answer"]
    text: str


class Empty(BaseModel):
    pass


class Get(msgspec.Struct, tag="get"):
    key: str


class Put(msgspec.Struct, tag="put"):
    key: str
    value: Union[int, str, None] = None


class Batch(msgspec.Struct, forbid_unknown_fields=True):
    steps: Annotated[list[Union[Get, Put]], msgspec.Meta(max_length=4)]
    rate: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0
    name: Annotated[str, msgspec.Meta(pattern="^[a-z]+$", max_length=8)] = "x"


class Rgb(msgspec.Struct, array_like=True):
    r: Annotated[int, msgspec.Meta(ge=0, le=255)]
    g: Annotated[int, msgspec.Meta(ge=0, le=255)]
    b: Annotated[int, msgspec.Meta(ge=0, le=255)]


ADDRESS = {"street": "A 1", "zip": "12345"}
PETS = {"pets": [{"kind": "cat"}, {"kind": "hound", "good": True}, {"kind": "parrot", "words": ["a"]}],
        "main": {"kind": "dog", "good": False}}
FORMATS = {"day": date(2024, 2, 29), "at": datetime(2024, 1, 1, 12, 30, 0, 250000, timezone.utc), "clock": time(23, 59, 1, tzinfo=timezone.utc),
           "span": timedelta(days=1, hours=2, minutes=5, seconds=3), "id": UUID(int=5), "four": "10.0.0.1", "six": "fe80::1",
           "site": "https://example.com/a?b=c", "any": "ftp://x/y", "file": "/tmp/a b"}
# Name, type, values that are taken, values that are refused.
CASES = [
    ("plain", Plain, [{"name": "a\"\n\u00e9\U0001f600", "age": -3, "weight": 1.5e-7, "alive": True}],
     [{"name": "a", "age": 1.5, "weight": 1, "alive": True}, {"name": "a", "age": 1, "weight": 1}, []]),
    ("optionals", Optionals, [{"b": None}, {"a": 1, "b": "x", "c": [1, 2], "d": {"k": 0.5}, "e": 1}],
     [{}, {"b": 1}, {"b": "x", "e": "y"}, {"b": "x", "c": ["a"]}]),
    ("bounds", Bounds, [{"port": 65535, "even": -8, "share": 0.25, "count": 0, "size": 0.001, "step": "12.50"},
                        {"port": 1, "even": 0, "share": 1, "count": 10**12, "size": 7, "step": "-0.5"}],
     [{"port": 65536, "even": 0, "share": 0, "count": 0, "size": 1, "step": "1"},
      {"port": 1, "even": 3, "share": 0, "count": 0, "size": 1, "step": "1"},
      {"port": 1, "even": 0, "share": 1.01, "count": 0, "size": 1, "step": "1"},
      {"port": 1, "even": 0, "share": 0, "count": -1, "size": 1, "step": "1"},
      {"port": 1, "even": 0, "share": 0, "count": 0, "size": 0, "step": "1"}]),
    ("texts", Texts, [{"code": "AB-1234", "title": "x", "slug": "a-b-c", "secret": "s"}],
     [{"code": "AB-12", "title": "x", "slug": "a"}, {"code": "AB-123", "title": "", "slug": "a"},
      {"code": "AB-123", "title": "x", "slug": "a--b"}, {"code": "AB-123", "title": "x", "slug": "abcdefghijklm"}]),
    ("formats", Formats, [FORMATS], [{**FORMATS, "day": "2023-02-29"}, {**FORMATS, "at": "yesterday"},
                                     {**FORMATS, "id": "5"}, {**FORMATS, "four": "256.0.0.1"}]),
    ("lists", Lists, [{"pair": [1, "a"], "many": [], "few": [1, 2, 3], "kinds": ["red", "green"], "nested": [[], [None]]}],
     [{"pair": [1], "many": [], "few": [1], "kinds": [], "nested": []},
      {"pair": [1, "a"], "many": [], "few": [], "kinds": [], "nested": []},
      {"pair": [1, "a"], "many": [], "few": [1, 2, 3, 4], "kinds": [], "nested": []},
      {"pair": [1, "a"], "many": [], "few": [1], "kinds": ["blue"], "nested": []}]),
    ("maps", Maps, [{"scores": {"x": 1, "": 2}, "flags": {"a": True}, "codes": {"EUR": 1.5}, "inner": {"a": {"b": [1]}}}],
     [{"scores": {"x": "1a"}, "flags": {}, "codes": {}, "inner": {}}, {"scores": {}, "flags": {"c": True}, "codes": {}, "inner": {}},
      {"scores": {}, "flags": {}, "codes": {"eur": 1}, "inner": {}}]),
    ("zoo", Zoo, [PETS], [{"pets": [{"kind": "cow"}], "main": {"kind": "cat"}}, {"pets": [], "main": {"kind": "parrot", "words": []}},
                          {"pets": [{"kind": "dog"}], "main": {"kind": "cat"}}]),
    ("mixed", Mixed, [{"value": None, "number": "auto", "key": 5}, {"value": ["a"], "number": 0.5, "key": UUID(int=7)}],
     [{"value": {}, "number": 1, "key": 1}, {"value": 1, "number": "manual", "key": 1}]),
    ("tree", Tree, [{"value": 1, "children": [{"value": 2}, {"value": 3, "children": [{"value": 4}]}]}],
     [{"value": 1, "children": [{"children": []}]}]),
    ("linked", Linked, [{"item": "a", "next": {"item": "b", "next": None}}], [{"item": "a", "next": "b"}]),
    ("expression", Expression, [1.5, {"left": {"left": 1.0, "op": "*", "right": 2.0}, "op": "+", "right": 3.0}],
     ["x", {"left": 1.0, "op": "-", "right": 2.0}, {"left": 1.0, "op": "+"}]),
    ("strict", Strict, [{"a": 1, "b": {"name": "", "age": 0, "weight": 0.0, "alive": False}}], [{"a": 1}, {"b": {}, "a": 1}]),
    ("open", Open, [{"a": 1}, {"a": 1, "b": 2, "c": 3}], [{"b": 2}, {"a": 1, "b": "x"}]),
    ("aliased", Aliased, [{"firstName": "x", "odd/key~\"é": 5}], [{"first_name": "x", "odd": 5}]),
    ("nested", Nested, [{"movie": {"title": "m"}, "point": [1.0, 2.5], "part": {"name": "p", "tags": ["t"]},
                         "colour": "a \"quoted\" one", "level": 10, "anything": [{"x": None}]},
                        {"movie": {}, "point": [0, 0], "part": {"name": ""}, "colour": "red", "level": 1}],
     [{"movie": {}, "point": [0], "part": {"name": ""}, "colour": "red", "level": 1},
      {"movie": {}, "point": [0, 0], "part": {"name": ""}, "colour": "red", "level": 2}]),
    ("page-of-plain", Page[Plain], [{"items": [{"name": "a", "age": 1, "weight": 2.0, "alive": True}], "total": 1}],
     [{"items": [{}], "total": 1}]),
    ("page-of-union", Page[Union[int, Cat]], [{"items": [1, {"kind": "cat", "lives": 3}], "total": 2}],
     [{"items": ["a"], "total": 1}]),
    ("derived", Derived, [{"id": 1, "extra": {"id": -1}}, {"id": 2}], [{"id": 0}]),
    ("reasoning", Reasoning, [{"steps": [{"explanation": "e", "output": "o"}], "final_answer": "f"}], [{"steps": []}]),
    ("order", Order, [{"id": 1, "ship_to": ADDRESS, "bill_to": None, "items": [{"sku": "s", "quantity": 1, "price": 9.99}],
                       "status": "paid"}],
     [{"id": 1, "ship_to": ADDRESS, "items": []}, {"id": 1, "ship_to": {"street": "", "zip": "1234"}, "items": []}]),
    ("tools", Annotated[Union[Search, Weather, Answer], Field(discriminator="tool")],
     [{"tool": "search", "query": "q"}, {"tool": "weather", "city": "c", "days": 7}, {"tool": "answer", "text": ""}],
     [{"tool": "search", "text": "q"}, {"tool": "weather", "city": "c", "days": 8}]),
    ("empty", Empty, [{}], [[], None]),
    ("any", Any, [{}, {"a": [1, None]}], []),
    ("colours", list[Colour], [["red", "a \"quoted\" one"], []], [["blue"]]),
    ("optional-level", Optional[Level], [None, 10], [2, "low"]),
    ("map-of-lists", dict[str, list[tuple[int, int]]], [{"a": [[1, 2]], "b": []}], [{"a": [[1]]}]),
    ("bytes-or-number", Union[bytes, float], ["abc", 2.5], [True, None]),
    ("positive-union", Union[Annotated[int, Field(gt=0)], Annotated[int, Field(lt=-10)]], [1, -11], [0, -10]),
    ("deep", dict[str, Union[int, list[dict[str, Optional[Cat]]]]], [{"a": 1, "b": [{"c": None, "d": {"kind": "cat", "lives": 1}}]}],
     [{"b": [{"d": {"kind": "dog"}}]}]),
    ("msgspec-batch", Batch, [{"steps": [{"type": "get", "key": "a"}, {"type": "put", "key": "b", "value": 5}], "rate": 0.5,
                               "name": "abc"}],
     [{"steps": [{"type": "del", "key": "a"}]}, {"steps": [], "rate": 0}, {"steps": [], "name": "A"},
      {"steps": [{"type": "get", "key": "a"}] * 5}]),
    ("msgspec-rgb", list[Rgb], [[[0, 128, 255]], []], [[[0, 1]], [[0, 1, 256]]]),
]


def is_msgspec(kind):
    return "msgspec" in str(getattr(kind, "__mro__", "")) or any(is_msgspec(part) for part in getattr(kind, "__args__", ()))


def schema_of(kind):
    return msgspec.json.schema(kind) if is_msgspec(kind) else TypeAdapter(kind).json_schema()


def written(kind, value):
    """The value as its package writes it, with all fields and without those that were not given."""
    if is_msgspec(kind):
        return [msgspec.json.encode(msgspec.convert(value, kind)).decode()]
    adapter = TypeAdapter(kind)
    read = adapter.validate_python(value)
    texts = [adapter.dump_json(read, by_alias=True, exclude_unset=unset).decode() for unset in (False, True)]
    spaced = json.dumps(json.loads(texts[0]), ensure_ascii=False)
    return list(dict.fromkeys([*texts, spaced]))


def refuses(kind, text):
    try:
        msgspec.json.decode(text, type=kind) if is_msgspec(kind) else TypeAdapter(kind).validate_json(text, strict=True)
    except (ValueError, msgspec.ValidationError):
        return True
    return False


def make():
    golden = []
    for name, kind, taken, refused in CASES:
        schema = schema_of(kind)
        validator = jsonschema.Draft202012Validator(schema)
        accepted = [text for value in taken for text in written(kind, value)]
        rejected = [json.dumps(value, default=str) for value in refused]
        for text in accepted:
            validator.validate(json.loads(text))
        for text in rejected:
            assert refuses(kind, text), (name, text)
        golden.append({"name": name, "schema": schema, "accepted": accepted, "rejected": rejected})
    with open(PATH, "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(each, ensure_ascii=False) for each in golden) + "\n]\n")


def check(redline, model):
    """Prints the schemas for which a text is not valid; texts that end by their length are not looked at."""
    with open(PATH, encoding="utf-8") as file:
        cases = json.load(file)
    wrong = looked_at = 0
    for each in cases:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as schema:
            json.dump(each["schema"], schema)
            schema.flush()
            for seed in range(3):
                done = subprocess.run([redline, "run", model, "-p", "Go", "--json-schema-file", schema.name, "--temp", "3", "--seed",
                                       str(seed), "-n", "400", "-c", "1024"], capture_output=True, text=True)
                looked_at += 1
                try:
                    jsonschema.Draft202012Validator(each["schema"]).validate(json.loads(done.stdout))
                except (ValueError, jsonschema.ValidationError) as problem:
                    wrong += 1
                    print(f"{each['name']}, seed {seed}: {done.stdout[:300]!r} {done.stderr[-300:]!r} {str(problem)[:200]}")
    print(f"{looked_at} texts of {len(cases)} schemas, {wrong} not valid")
    return wrong == 0


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--check", nargs=2, metavar=("REDLINE", "MODEL"))
    given = arguments.parse_args()
    if not given.check:
        make()
    elif not check(*given.check):
        sys.exit(1)


if __name__ == "__main__":
    main()
