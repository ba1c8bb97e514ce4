"""How people ask: templates for subjects, deeds and problems, and the noise of quick typing."""

from grammar import expand, favoured


def split_table(text):
    """The alternatives of a table above: apart by | outside of brackets, or by line ends."""
    out, depth, current = [], 0, []
    for c in text:
        depth += (c == "[") - (c == "]")
        if c in "|\n" and depth == 0:
            out.append("".join(current))
            current = []
        else:
            current.append(c)
    return [line for line in out + ["".join(current)] if line.strip()]

ABOUT = """what is {s}|what's {s}|what is {s} exactly|what exactly is {s}|[can|could|would] you [please|] explain {s} [to me|]
explain {s} [to me|] [please|simply|briefly|in one sentence|in simple words|like i am five|]|tell me about {s}
tell me [what|a bit about what|in short what] {s} is|please [tell|explain to] me what {s} is|define {s}|{s}|{s}?|what does {s} mean
what is meant by {s}|what do [people|they|you] mean [by|with|when they say] {s}|[meaning|definition] of {s}
[i keep|i often keep] [seeing|reading|hearing] [about|] {s}, what is [it|that]|[help|make] me understand {s}
what [can|could] you tell me about {s}|what do you know about {s}|do you know [what {s} is|about {s}|{s}]
[i|we] [do not|don't] [understand|get|know] {s}|[i|we] [do not|don't] [understand|get|know] what {s} is
what on earth is {s}|what the heck is {s}|{s} explained|{s} meaning|{s}, what is [that|it|this]|so what is {s}
[i'd|i would] [like|love] to [know|learn|understand] [what {s} is|about {s}|more about {s}]|describe {s} [for me|]
give me [a|an|some] [short explanation|explanation|summary|overview|idea|definition|description|information] of {s}
[i heard|someone told me|i read|a friend told me] about {s}, what is [it|that]|[i am|i'm] [curious|wondering] about {s}
[i wonder|i was wondering|i am wondering] what {s} is|[any idea|any clue] what {s} is|how would you [describe|explain|define] {s}
how do you explain {s} to [a child|a beginner|my mother|someone new]|in [plain|simple|easy] [english|words|terms], what is {s}
[what's|what is] the [idea|meaning|purpose|point|concept|use] of {s}|[what's|what is] {s} [for|good for|about|all about|supposed to be]
[why|when] [do i need|would i use|do people use|does one use] {s}|what do i [need|use] {s} for|what role does {s} play
who can explain {s}|[teach|show] me {s}|something about {s} please|info on {s}|[can|could] you say what {s} is
[can|could|would] you [describe|define|clarify|summarize] {s} [for me|briefly|]|how does {s} work|what does {s} do
i need to know [what {s} is|about {s}]|[what|which] sort of thing is {s}|what kind of thing is {s}
the term {s}, what does it mean|what does the [word|term|name|expression] {s} [mean|stand for|tell me|say]
[i have|there is] a question about {s}|[i saw|i found|there is] {s} somewhere, what [is it|does it mean]|{s} please
[fill me in on|brief me on|enlighten me about|walk me through|talk me through|educate me on] {s}|let's talk about {s}
what should i know about {s}|what am i to understand by {s}|what [would|do] you call {s}|is {s} something i should know"""

AND = """and {s}|and {s}?|what about {s}|how about {s}|and what is {s}|ok, and {s}|now {s}|and what does {s} mean|then what is {s}
next: {s}|also {s}|and what's {s}|same question for {s}|i also want to know what {s} is"""

HOW = """how [do|can|could|would|should|might] [i|you|we|one|somebody] {h}|how to {h}|how do i {h} [with redline|in redline|here|on linux|]
what [is|'s] the [way|best way|easiest way|right way|command|option|flag|trick|method|recommended way] to {h}
[i want|i'd like|i would like|i need|i wish|i am trying|i'm trying|i have] to {h}|[can|could] you [tell|show|explain to] me how to {h}
[tell|show|teach] me how to {h}|[is there|do you know|do we have] [a|any|some] [way|option|flag|command|possibility|method] to {h}
[which|what] [option|flag|command|switch|setting] [do i|can i|should i|must i|would i] [use|need|take] to {h}
[which|what] [option|flag|command|switch|setting] [lets me|allows me to|helps me to|makes it possible to] {h}
[can|could] i {h}|[can|could] [i|one|we] {h} [with redline|here|somehow|at all|]|is it possible to {h}|{h}|{h}?|{h}, how
[i don't know|i do not know|no idea|i can't find out|i forgot|not sure] how to {h}|help me [to|] {h}|[need|want] to {h}
what [do|would|should|must|can] i [type|do|write|enter|run|use] [to|in order to|if i want to|when i want to] {h}
what if i [want|need|have] to {h}|suppose i want to {h}, [how|what do i do|what then]|how does one {h}|how is it possible to {h}
[steps|command|instructions|a command|an option] to {h}|[trying|wanting|hoping|looking|planning] to {h}
[my aim|my goal|the goal|my plan] is to {h}|give me [the command|an example|the option] to {h}|what would you do to {h}
[where|how] do i [set|say|tell redline] that i want to {h}|how would [i|one|you] go about it if [i|one|you] [want|wanted] to {h}
any [tips|advice|hints] on how to {h}|please help me [to|] {h}|what does it take to {h}|i was asked to {h}
how come i can't {h}|best way to {h}|[quickest|simplest] way to {h}|i would love to {h}, how"""

PROBLEM = """{p}|{p}, what [should|can|could|do|must|shall] i do|{p}, what now|{p}. [any ideas|what now|please help|help|any advice|what is wrong|what to do]
help, {p}|help me, {p}|what [can|should|could|do] i do [if|when] {p}|what to do [if|when] {p}|why is it that {p}
what [if|when] {p}|how do i [fix|solve|avoid|handle|prevent] it [if|when] {p}|{p}, how do i [fix|solve|avoid|change|prevent] [that|it|this]
my problem is that {p}|[i have a|there is a|got a] problem: {p}|{p} and i [do not|don't] know what to do|{p}, why
[it seems|i think|looks like] {p}|{p} [again|all the time|on my machine|on my laptop|here]|[oh no|damn|hm|ugh], {p}
is there [a way out|something i can do|a solution|a fix] [if|when] {p}|{p}, is there [a|any] [fix|solution|remedy|cure|way around]
what helps [if|when] {p}|{p}, what helps|{p}, how can i get around that"""

MORE = """tell me more|more|more please|go on|can you say more|and|what else|more details|can you explain [more|further|that in detail]
[please|] [elaborate|continue|go on]|is there more|anything else [about that|to know|]|and then|more about [that|it|this]|i want to know more
say more about [it|that]|[can|could] you go into [detail|more detail]|what else should i know"""

AGAIN = """[can|could] you repeat that|again|again please|say that again|what did you say|sorry, what|come again|once more|pardon
i did not understand|i don't get it|can you say it [again|differently|in other words]|in other words|what do you mean|i am confused
say it [simply|in other words]|huh|rephrase that|that was too [fast|complicated|hard]"""

PREFIX = """hi, |hello, |hey, |hey |ok, |ok |okay so |so |well, |please: |quick question: |question: |a question: |sorry, |excuse me, |um, |hm, |now, |alright, 
next question: |another question: |one more thing: |i have a question: |[i am|i'm] new [to this|here], |i am a beginner: |dear model, |redline, |hello! |hi! 
stupid question: |maybe a stupid question, but |tell me, |listen, |and |also, |by the way, |just wondering: |ah, |good, |thanks. |ok thanks. |great. 
i just installed redline. |i downloaded a model yesterday. |my friend uses redline. |we talked about it at work: |as a newcomer, |for my understanding: """.replace("\n", "")

SUFFIX = """ please| pls| thanks| thank you| for me| again| exactly| actually| then| now| by the way| in short| in general| [i am|i'm] new to this| if i may ask| really
 in redline| here| in this context| with local models| in your opinion| in a few words| in one sentence| briefly| simply put| anyway| though| in llms| when running models| roughly"""

SWAPS = """model: llm, network, ai model, language model|memory: ram, mem, main memory|ram: memory, main memory|machine: computer, pc, laptop, system, box, device, hardware
computer: machine, pc, notebook|use: utilise, take, employ, pick, apply|choose: pick, select, settle on, decide on|explain: clarify, describe, outline, illustrate|big: large, huge, massive
large: big, enormous|fast: quick, speedy, rapid|slow: sluggish, lame|answer: reply, response, output|answers: replies, responses|command: subcommand, instruction|file: download, document
make: create, produce, build|quant: quantization, quant type, quantisation, variant|show: display, reveal, present|option: flag, switch, setting, parameter|flag: option, switch, argument
need: require, want|start: begin, launch, commence|stop: halt, end, cease, interrupt|write: generate, produce, compose|text: output, passage, prose|happens: goes on, occurs, takes place, is going on
difference: distinction, contrast|should: would, ought to, could, might|best: ideal, most suitable, wisest, optimal|good: sensible, decent, fine, suitable|mean: signify, tell, stand for
know: find out, learn, understand|see: look at, view, find out|shrink: reduce, decrease, compact|measure: determine, assess, gauge|speed: pace, performance, throughput, quickness
get: obtain, receive, achieve, have|smaller: tinier, lighter, more compact|tell: inform, let know, say to|work: function, operate|run: execute, launch, operate, start|small: little, tiny, compact
set: configure, adjust, specify|quality: fidelity, accuracy, precision, exactness|limits: restricts, caps, constrains, holds up|leave: exit, quit, get out of|possible: feasible, doable|find: locate, look up, discover
way: method, possibility, means, approach|question: query|chat: conversation, dialogue, talk|talk: speak, chat, converse|conversation: dialogue, chat, discussion|story: tale, fairy tale|change: alter, modify, vary
increase: raise, enlarge, extend|reduce: lower, cut, decrease|purpose: point, use, aim|same: identical, equal|options: flags, switches, settings, arguments|models: llms, networks|tokens: words, pieces
needed: required, necessary|supported: possible, usable, accepted|much: a lot of, plenty of|many: lots of, several|files: downloads|generation: writing, output|check: verify, test, determine|load: open, read in
prompt: input, question|program: tool, software, application|everything: it all, things|crashes: dies, fails|kind: sort, type|sort: kind, type|people: folks, users|works: functions|help: assist, support
useful: helpful, handy|reading: processing, digesting|writing: producing, generating|written: coded, programmed, developed|size: extent, magnitude|too: overly, far too|usual: common, ordinary
simple: plain, easy|little: small, tiny|total: sum|remain: are left|left: remaining|want: wish, would like, intend|try: attempt|wrong: incorrect, false|right: correct|fix: solve, repair, cure|avoid: prevent, dodge
inside: within, in|begin: start|end: finish, stop|new: fresh, recent|better: superior, finer|worse: poorer|gpu: graphics card, video card|cpu: processor|context: context window, window|cache: kv cache, buffer"""
SWAPS = {key: values.split(", ") for key, values in (row.split(": ") for row in split_table(SWAPS))}
CASUAL = {"you": "u", "are": "r", "please": "pls", "what is": "whats", "what's": "whats", "i am": "im", "do not": "dont", "don't": "dont", "because": "cuz",
          "want to": "wanna", "going to": "gonna", "thanks": "thx", "how do i": "how 2", "though": "tho", "cannot": "cant", "can't": "cant", "with": "w/"}
# Words that say nothing about the question: the model has to look past them.
STRAY = """colleague honour possess cloned yesterday kindly sincerely perhaps properly somewhat particular ordinary sensible curious opinion moment Monday kitchen
office weather neighbour university student professor project deadline budget boss customer school teacher uncle cousin coffee evening weekend morning holiday
suddenly recently normally honestly frankly obviously apparently certainly definitely essentially specifically generally typically practically effectively
cheap expensive fancy shiny boring strange weird odd peculiar nice lovely awful horrible brilliant clever proper decent actual typical various certain given
regarding concerning considering assuming supposing provided including besides despite throughout within beneath beyond toward against among between
wonder suppose guess reckon believe imagine hope fear doubt remember forget realise notice mention discuss consider compare recommend suggest propose
situation matter issue topic subject area field detail example instance case reason cause effect result outcome goal task job thing stuff bit piece part
tested installed prepared configured purchased borrowed heard read seen taken given chosen wanted required expected intended supposed allowed
keen eager willing able ready busy free stuck lost afraid glad pleased sorry afraid confused surprised tired overwhelmed impressed annoyed""".split()
SITUATIONS = """i have [a laptop|an old pc|a ryzen|a workstation|a mini pc|a server] with [8|16|32|64|128] gb of [ram|memory]|i am [writing|preparing|planning] [a report|a talk|a thesis|a school project|a blog post] [on this|]
my [boss|teacher|colleague|brother|neighbour|friend|professor|sister] [asked|wants to know|keeps asking|wonders]|i [read|saw|heard] [it|this|about it] [on a forum|in an article|in the readme|on reddit|at work|in a video|on the news]
i [use|am on|run|have] [debian|ubuntu|linux|a fresh install]|[it is|this is] [urgent|for work|for school|important|not urgent|my first time|all new to me]|i [have|own|bought] [a new|an amd|an intel|a used] [machine|laptop|gpu|cpu|card]
[please|] be [brief|honest|clear|patient|exact]|i [could not|cannot|did not] find [it|this|an answer|anything] [anywhere|in the docs|on the web|]|i [installed|built|cloned|started] [redline|it] [yesterday|today|just now|last week]
i [downloaded|have|got|fetched] [a model|qwen|llama|mistral|a 7b model|a small model|several files] [yesterday|today|from hugging face|]|[sorry|excuse me] [if this is obvious|for the simple question|for bothering you]
i am [no expert|a student|a teacher|a programmer|an old man|just curious|learning|not a programmer|only a beginner]|[we|my team] [want|plan|try] to [use|test|install] [it|this] [at work|at school|at home|in production]"""
SITUATIONS = split_table(SITUATIONS)
STOP_WORDS = set("""a an the is are was were be do does did to of in on for it i me my you your we our can could would should will what how which who please tell explain that this there have has
with and if so at by from as""".split())
FILLERS = ["really", "actually", "just", "exactly", "please", "maybe", "basically", "even", "the", "now", "still", "simply"]



ABOUT, AND, HOW, PROBLEM, MORE, AGAIN, PREFIX, SUFFIX = map(split_table, (ABOUT, AND, HOW, PROBLEM, MORE, AGAIN, PREFIX, SUFFIX))


def typo(text, rng):
    """One slip of a finger inside a word of letters."""
    places = [i for i in range(1, len(text) - 2) if text[i].isalpha() and text[i + 1].isalpha()]
    if not places:
        return text
    i = rng.choice(places)
    kind = rng.random()
    if kind < 0.35:
        return text[:i] + text[i + 1] + text[i] + text[i + 2:]
    if kind < 0.7:
        return text[:i] + text[i + 1:]
    if kind < 0.85:
        return text[:i] + text[i] + text[i:]
    return text[:i] + rng.choice("abcdefghijklmnopqrstuvwxyz") + text[i + 1:]


def reworded(text, rng):
    """Some words replaced, added or left out."""
    words = text.split(" ")
    for i, word in enumerate(words):
        if word in SWAPS and rng.random() < 0.35:
            words[i] = rng.choice(SWAPS[word])
    if rng.random() < 0.12 and len(words) > 2:
        words.insert(rng.randrange(1, len(words)), rng.choice(FILLERS))
    if rng.random() < 0.12 and len(words) > 4:
        droppable = [i for i, word in enumerate(words) if word in ("the", "a", "an", "is", "to", "of", "do", "does", "in", "i", "me", "it", "my")]
        if droppable:
            del words[rng.choice(droppable)]
    while rng.random() < 0.12 and len(words) > 2:
        words.insert(rng.randrange(1, len(words) + 1), rng.choice(STRAY))
    return " ".join(words)


def keywords(text, rng):
    """The question as one would type it into a search box; sometimes in another order."""
    words = [word for word in text.split(" ") if word.lower() not in STOP_WORDS or rng.random() < 0.25]
    if rng.random() < 0.3:
        cut = rng.randrange(len(words) + 1)
        words = words[cut:] + words[:cut]
    return " ".join(words) or text


def situated(text, rng):
    """With a sentence before or after it that does not matter."""
    around = expand(rng.choice(SITUATIONS), rng)
    return f"{around}[.|,|:|;| and] {text}" if rng.random() < 0.6 else f"{text}[?|.|,|;] {around}"


def dressed(text, rng, question=True):
    """The text as somebody may type it."""
    text = text.strip()
    if len(text.split(" ")) > 4 and question and rng.random() < 0.07:
        text = keywords(text, rng)
    if rng.random() < 0.5:
        text = reworded(text, rng)
    if question and rng.random() < 0.1:
        text = expand(situated(text, rng), rng)
    if rng.random() < 0.16:
        text = expand(rng.choice(PREFIX), rng) + " " + text
    if rng.random() < 0.12 and not text.endswith("?"):
        text += " " + expand(rng.choice(SUFFIX), rng)
    if rng.random() < 0.1:
        for word, short in CASUAL.items():
            if rng.random() < 0.5:
                text = f" {text} ".replace(f" {word} ", f" {short} ").strip()
    text = " ".join(text.split())
    style = rng.random()
    if style < 0.5:
        text = text[:1].upper() + text[1:]
        text = f"{text} ".replace(" i ", " I ").replace(" i'", " I'").replace(" i,", " I,").strip()
    elif style < 0.53:
        text = text.upper()
    elif style < 0.7:
        text = text.lower()
    if rng.random() < 0.14:
        text = typo(text, rng)
        if rng.random() < 0.3:
            text = typo(text, rng)
    if text[-1:] not in "?.!":
        end = rng.random()
        if question:
            text += "?" if end < 0.62 else "??" if end < 0.64 else "." if end < 0.68 else ""
        else:
            text += "." if end < 0.35 else "!" if end < 0.45 else ""
    return text


def ask(fact, rng, later=False):
    """A question for the fact, before dressing."""
    kinds = [(kind, weight) for kind, weight in (("q", 1.4), ("s", 1.0), ("h", 1.0), ("p", 1.0)) if fact.lines[kind]]
    kind = rng.choices([k for k, _ in kinds], [w for _, w in kinds])[0]
    text = expand(rng.choice(fact.lines[kind]), rng)
    if kind == "s":
        table = AND if later and rng.random() < 0.2 else ABOUT
        return expand(rng.choice(table), rng, s=text)
    if kind == "h":
        return expand(rng.choice(HOW), rng, h=text)
    if kind == "p":
        return expand(rng.choice(PROBLEM), rng, p=text)
    return text


# How often the first answer of a fact is given. One answer that is clearly likelier makes greedy text the same on every
# backend and quantization; the others remain for sampling.
FIRST, FIRST_TALK = 0.88, 0.7


def answer(fact, rng, first=FIRST):
    return expand(favoured(fact.lines["a"], rng, first), rng)


def other_answer(fact, said):
    """For who asks again: the answer after the one given."""
    answers = fact.lines["a"]
    return answers[(answers.index(said) + 1) % len(answers)] if said in answers else answers[0]
