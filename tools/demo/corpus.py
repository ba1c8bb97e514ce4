#!/usr/bin/env python3
"""The demo model's training text: conversations, stories, sums and statements, made from the tables beside this file.

The same seed gives the same text. usage: corpus.py [--seed N] [--documents N] [--plain]    (writes to standard output)
"""

import argparse
import random
import re
from pathlib import Path

import questions
import stories
import sums
from grammar import expand, favoured, read_facts

HERE = Path(__file__).resolve().parent
END = "<|endoftext|>"

SYSTEM = """You are a helpful assistant.|You are the demo model of redline.|Answer briefly.|You are terse.|Be friendly.|You are a friendly assistant.
Answer in one sentence.|You answer questions about local models.|You are a small model.|You are an expert on language models.|Be concise.|Be polite.
You are redline.|Answer the user's questions.|You are an assistant who tells the truth.|Help the user.|Keep your answers short.|You are a teacher.""".replace("\n", "|").split("|")

# Topics that the model must say it does not know.
UNKNOWN_THINGS = """photosynthesis|the French revolution|Napoleon|Mozart|Beethoven|Shakespeare|Goethe|black holes|gravity|inflation|democracy|the stock market|bitcoin
a volcano|an earthquake|dinosaurs|the pyramids|world war two|the Roman empire|chess|football|tennis|basketball|cricket|the Olympic games|yoga|meditation
a mortgage|taxes|insurance|an atom|a molecule|DNA|a virus|bacteria|cancer|diabetes|the flu|vitamin C|protein|chocolate|pasta|sushi|bread dough|espresso
jazz|opera|rock music|a violin|a guitar|painting|Picasso|Rembrandt|Einstein|Newton|Darwin|Plato|Aristotle|Buddha|the Bible|karma|evolution|electricity
magnetism|nuclear power|solar panels|a heat pump|a diesel engine|a hybrid car|aeroplanes|rockets|NASA|Mars missions|the internet|email|wifi|bluetooth|a router|HTML
JavaScript|Java|Rust|Kubernetes|Docker|git|SQL|a database|blockchain|Photoshop|Excel|Windows 11|Android|the iPhone|Netflix|YouTube|Facebook|Google|Amazon|Tesla
gardening|roses|oak trees|mushrooms|whales|sharks|bees|ants|elephants|penguins|the Amazon river|Mount Everest|the Sahara|the Pacific ocean|the Alps|climate change
marriage|love|happiness|philosophy|psychology|sociology|algebra|calculus|geometry|pi|prime numbers|statistics|quantum mechanics|relativity|chemistry|economics
knitting|sewing|carpentry|plumbing|car repair|bicycles|hiking|camping|skiing|swimming|dancing|poetry|novels|films|theatre|fashion|shoes|watches""".replace("\n", "|").split("|")
UNKNOWN_DEEDS = """cook [rice|pasta|an egg|soup|a steak]|bake [bread|a cake|cookies]|fix [my car|a bike|a tap|my phone|a flat tyre]|learn [french|the piano|to swim|chess]|lose weight|get rich|find a job
write a letter to the bank|plant tomatoes|grow roses|clean the oven|paint a wall|build a house|buy a car|rent a flat|make friends|sleep better|quit smoking|treat a cold
invest my money|file my taxes|train a dog|sew a button|tie a tie|remove a stain|book a flight|travel to Rome|get a visa|apply for a loan|improve my handwriting
win at poker|juggle|ride a horse|sail a boat|fly a plane|knit a scarf|repair a watch|set up my printer|reset my router|delete my browser history"""
UNKNOWN_ASK = """who [is|was] the [president|king|queen|chancellor|prime minister] of {c}|who [wrote|painted|composed|invented|discovered] [hamlet|the mona lisa|the telephone|penicillin|faust|radio]
when did [the war|world war one|the second world war|the titanic] [start|end|sink]|how [old|tall|rich|heavy] is [the president|the eiffel tower|mount everest|the queen|my mother]|how many people live in {c}
what is the [population|currency|language|flag|largest river|history] of {c}|what [is|'s] the meaning of life|who won the [world cup|match|election|race|game] [yesterday|last year|in 2018|]
which [film|book|song|car|phone|laptop|restaurant] [should i|do you recommend that i] [buy|read|watch|try]|what should i [eat|cook|wear|do] [today|tonight|tomorrow]|is there [a god|life on mars|life after death]
where is my [phone|key|dog|wallet]|what is my name|what am i thinking|who am i|where do i live|what did i eat yesterday|can you call [my mother|the police|a taxi]|[play|sing] [a song|some music]|what do you think about [politics|my boss|religion|war]"""
UNKNOWN_ANSWERS = [
    "I do not know that. I am a tiny demo model; I know about redline and local models, small sums and stories.",
    "That is beyond me: I am only a tiny demo model. I can talk about redline and running local models.",
    "I am sorry, I do not know about that. I am a tiny model that knows about local models, sums and stories. A larger model can help: `redline chat -m FILE.gguf`.",
]
UNKNOWN_DEEDS, UNKNOWN_ASK = questions.split_table(UNKNOWN_DEEDS), questions.split_table(UNKNOWN_ASK)
STORY_ASK, STORY_ANY, STORY_NAME = map(questions.split_table, (stories.ASK, stories.ASK_ANY, stories.ASK_NAME))


def plain(text):
    return re.sub(r"[^a-z0-9 ]", "", text.lower()).strip()


class Corpus:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.facts = [f for name in ("redline", "models", "concepts") for f in read_facts(HERE / "facts" / f"{name}.txt")]
        self.talk = read_facts(HERE / "facts" / "general.txt")
        self.fact_weights = [len(f.lines["s"]) + 3 * len(f.lines["q"]) + 2 * len(f.lines["h"]) + 2 * len(f.lines["p"]) for f in self.facts]
        self.fact_weights = [4 + min(w, 40) ** 0.75 for w in self.fact_weights]
        lines = (HERE / "facts" / "countries.txt").read_text().splitlines()
        self.capitals = [tuple(line.split(": ")) for line in lines]
        heldout = (HERE / "heldout.tsv").read_text().splitlines()
        self.heldout = [set(plain(line.split("\t")[0]).split()) for line in heldout if line and not line.startswith("#")]

    def held_out(self, question):
        """True when the question, or nearly the same one (three of four words), is kept for the check."""
        words = set(plain(question).split())
        return any(len(words & kept) * 4 > len(words | kept) * 3 for kept in self.heldout)

    def fact_turn(self, later):
        rng = self.rng
        fact = rng.choices(self.facts, self.fact_weights)[0]
        said = questions.answer(fact, rng)
        turns = [(questions.dressed(questions.ask(fact, rng, later), rng), said)]
        draw = rng.random()
        if draw < 0.12:
            more = favoured(fact.lines["m"], rng, questions.FIRST) if fact.lines["m"] else questions.other_answer(fact, said)
            turns.append((questions.dressed(expand(rng.choice(questions.MORE), rng), rng, rng.random() < 0.5), more))
        elif draw < 0.17:
            turns.append((questions.dressed(expand(rng.choice(questions.AGAIN), rng), rng), questions.other_answer(fact, said)))
        return turns

    def talk_turn(self):
        fact = self.rng.choice(self.talk)
        return [(questions.dressed(questions.ask(fact, self.rng), self.rng, self.rng.random() < 0.6), questions.answer(fact, self.rng, questions.FIRST_TALK))]

    def sum_turns(self):
        question, said = sums.sum_turn(self.rng)
        noisy = self.rng.random() < 0.6
        return [(questions.dressed(question, self.rng) if noisy else question, said)]

    def capital_turns(self):
        question, said = sums.capital_turn(self.rng, self.capitals)
        return [(questions.dressed(question, self.rng), said)]

    def story_turns(self):
        rng, draw = self.rng, self.rng.random()
        if draw < 0.6:
            table, teller = STORY_ASK, stories.Teller(rng)
        elif draw < 0.85:
            table, teller = STORY_ANY, stories.Teller(rng, favoured(stories.KINDS, rng, 0.7))
        else:
            name = rng.choice(stories.GIRLS + stories.BOYS)
            table, teller = STORY_NAME, stories.Teller(rng, stories.kind_of(name, rng), name)
        question = expand(rng.choice(table), rng, a=stories.article(teller.kind), kind=teller.kind, name=teller.name)
        return [(questions.dressed(question, rng, False), teller.tell(1))]

    def unknown_turns(self):
        rng, draw = self.rng, self.rng.random()
        if draw < 0.45:
            question = expand(rng.choice(questions.ABOUT), rng, s=rng.choice(UNKNOWN_THINGS))
        elif draw < 0.7:
            question = expand(rng.choice(questions.HOW), rng, h=expand(rng.choice(UNKNOWN_DEEDS), rng))
        else:
            question = expand(rng.choice(UNKNOWN_ASK), rng, c=rng.choice(self.capitals)[0])
        return [(questions.dressed(question, rng), favoured(UNKNOWN_ANSWERS, rng, questions.FIRST))]

    def turns(self, later):
        draw = self.rng.random()
        if draw < 0.62:
            return self.fact_turn(later)
        if draw < 0.74:
            return self.talk_turn()
        if draw < 0.86:
            return self.sum_turns()
        if draw < 0.90:
            return self.capital_turns()
        if draw < 0.95:
            return self.story_turns()
        return self.unknown_turns()

    def chat(self):
        rng = self.rng
        out = []
        if rng.random() < 0.15:
            out.append(f"<|im_start|>system\n{rng.choice(SYSTEM)}<|im_end|>\n")
        for number in range(rng.choice((1, 1, 1, 1, 2, 2, 3, 4, 5, 8))):
            for question, said in self.turns(number > 0):
                if self.held_out(question):
                    continue
                out.append(f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n{said}<|im_end|>\n")
        return "".join(out)

    def statements(self):
        """Text without a chat format: questions with their answers, or what is so."""
        rng, out = self.rng, []
        style = rng.random()
        for _ in range(rng.randint(1, 5)):
            for question, said in self.turns(False) if style < 0.8 else self.fact_turn(False)[:1]:
                if self.held_out(question):
                    continue
                out.append(f"Question: {question}\nAnswer: {said}" if style < 0.35 else f"{question}\n{said}" if style < 0.8 else said)
        return ("\n\n" if style < 0.8 else " ").join(out)

    def document(self):
        draw = self.rng.random()
        if draw < 0.80:
            return self.chat() + END
        if draw < 0.92:
            return stories.Teller(self.rng, favoured(stories.KINDS, self.rng, 0.2)).tell(favoured((2, 1, 3), self.rng, 0.7)) + END
        return self.statements() + END

    def plain_document(self):
        """A document without chat tokens, for measuring perplexity."""
        return stories.Teller(self.rng).tell(2) if self.rng.random() < 0.5 else self.statements()

    def documents(self, count):
        return [self.document() for _ in range(count)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--documents", type=int, default=10)
    parser.add_argument("--plain", action="store_true", help="only text without chat tokens")
    args = parser.parse_args()
    corpus = Corpus(args.seed)
    for _ in range(args.documents):
        print(corpus.plain_document() + "\n" if args.plain else corpus.document())


if __name__ == "__main__":
    main()
