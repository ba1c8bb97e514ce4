"""Small arithmetic in many wordings, and capitals."""

from grammar import expand, favoured
from questions import FIRST, split_table

ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty".split()
TENS = {30: "thirty", 40: "forty", 50: "fifty", 60: "sixty", 70: "seventy", 80: "eighty", 90: "ninety", 100: "a hundred"}

LEAD = "[what is|what's|how much is|calculate|compute|work out|tell me|can you compute|what does|solve|do you know what is|please compute|find|give me|what do you get for|what do i get for||||]"
WORDS = {
    "+": """{lead} {a} + {b}|{lead} {a}+{b}|{lead} {a} plus {b}|{lead} {a} and {b}|add {a} and {b}|add {b} to {a}|[what is|] the sum of {a} and {b}|{a} + {b} = |{a} plus {b} [is|equals|makes] [what|]
i have {a} {things} and get {b} more, how many [do i have|are there] [now|]|{name} has {a} {things} and [buys|finds|gets] {b} more. how many {things} does {name} have [now|]
[there are|we see] {a} {things}, then {b} more come. how many are there|sum up {a} and {b}|what [is|do you get] if you add {a} and {b}|{a} added to {b}|together, {a} and {b} [are|is] what""",
    "-": """{lead} {a} - {b}|{lead} {a}-{b}|{lead} {a} minus {b}|subtract {b} from {a}|[what is|] the difference between {a} and {b}|{a} - {b} = |{a} minus {b} [is|equals|makes] [what|]
i have {a} {things} and [give away|lose|eat|sell] {b}, how many [do i have left|are left|remain]|{name} has {a} {things} and [loses|gives away|eats] {b}. how many {things} [does {name} have left|are left|remain]
take {b} from {a}|what is left of {a} [when|if] {b} [are|is] [taken away|gone]|{a} take away {b}|{a} less {b}|how much is left if you take {b} from {a}|remove {b} from {a}""",
    "*": """{lead} {a} * {b}|{lead} {a} x {b}|{lead} {a} times {b}|multiply {a} [by|and|with] {b}|[what is|] the product of {a} and {b}|{a} times {b} [is|equals] [what|]|{a}*{b}
there are {a} boxes with {b} {things} each. how many {things} [are there|are that|in all]|{a} multiplied by {b}""",
    "/": """{lead} {a} / {b}|{lead} {a} divided by {b}|divide {a} by {b}|{b} [children|friends|people] share {a} {things}. how many does each get|{a} divided by {b} [is|equals] [what|]|{a}/{b}""",
}
SAY = {"+": "plus", "-": "minus", "*": "times", "/": "divided by"}
THINGS = "apples|books|coins|stones|cookies|balls|stars|eggs|pencils|nuts|flowers|cards|tokens|marbles|pears|fish".split("|")
NAMES = "Tom Anna Ben Lily Max Mia Paul Emma Leo Nora".split()


WORDS = {op: split_table(table) for op, table in WORDS.items()}


def spoken(number):
    if number <= 20:
        return ONES[number]
    if number in TENS:
        return TENS[number]
    if number < 100:
        tens = "twenty" if number < 30 else TENS[number // 10 * 10]
        return f"{tens}-{ONES[number % 10]}"
    return str(number)


def operands(rng):
    op = rng.choices("+-*/", (10, 9, 5, 2))[0]
    top = rng.choice((10, 20, 20, 50, 100, 100)) if rng.random() < 0.93 else 1000
    if op == "+":
        return op, rng.randint(0, top), rng.randint(0, top)
    if op == "-":
        a = rng.randint(0, top)
        return op, a, rng.randint(0, a) if rng.random() < 0.95 else rng.randint(0, top)
    if op == "*":
        return op, rng.randint(0, 12), rng.randint(0, 12)
    b = rng.randint(1, 12)
    return op, b * rng.randint(0, 12), b


def result(op, a, b):
    return a + b if op == "+" else a - b if op == "-" else a * b if op == "*" else a // b


def sum_turn(rng):
    op, a, b = operands(rng)
    words = rng.random() < 0.18
    show = spoken if words else str
    question = expand(rng.choice(WORDS[op]), rng, lead=expand(LEAD, rng), a=show(a), b=show(b), things=rng.choice(THINGS), name=rng.choice(NAMES))
    c = result(op, a, b)
    sign = "x" if op == "*" else op
    said = favoured((f"{a} {SAY[op]} {b} is {c}.", f"{a} {sign} {b} = {c}.", f"That is {a} {sign} {b} = {c}."), rng, FIRST)
    return question, said


CAPITAL = split_table("""[what is|what's|name|tell me|do you know|say|give me|which is|] the capital [city|] of {c}|{c}'s capital|[what|which] [city|town] is the capital of {c}|capital of {c}|what is {c}'s capital
[where|in which city|in which town] is the government of {c}|the capital of {c}|[which|what] capital [does|has] {c} [have|]|what do you call the capital of {c}|[what|which] is the main city of {c}""")


def capital_turn(rng, capitals):
    country, city = rng.choice(capitals)
    question = expand(rng.choice(CAPITAL), rng, c=country)
    name = country[0].upper() + country[1:]
    return question, favoured((f"The capital of {country} is {city}.", f"{city} is the capital of {country}.", f"It is {city}: the capital of {country}."), rng, FIRST)
