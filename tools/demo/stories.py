"""Short stories from a grammar: a hero, a place, a trouble, a helper and a good end."""

import random

from grammar import expand, favoured

ANIMALS = """cat dog fox bear rabbit mouse owl frog duck hedgehog squirrel horse donkey pig goat sheep cow lion tiger elephant monkey turtle
snail bee ant butterfly sparrow crow swan penguin whale dolphin fish crab wolf deer badger otter beaver mole bat parrot hen rooster
goose lamb kitten puppy camel giraffe zebra panda koala kangaroo seal octopus spider lizard snake dragon unicorn""".split()
PEOPLE = """girl boy king queen prince princess knight farmer baker fisherman sailor gardener tailor wizard witch teacher pirate painter
robot giant clockmaker shepherd cook miller musician postman astronaut inventor librarian child giant ghost snowman computer machine tree
cloud train boat car teapot pencil star lamp clock""".split()
KINDS = ANIMALS + PEOPLE
GIRLS = "Lily Mia Anna Emma Lena Clara Nora Ella Ruby Rose Ada Ida Mila Tilda Maya Zoe Lucy Alice Grace Daisy Hazel Ivy June Molly Sally".split()
BOYS = "Tom Ben Max Leo Paul Finn Oscar Felix Hugo Emil Otto Jack Sam Theo Anton Noah Carl Milo Toby Rufus Peter Jonas Oliver Henry Bruno".split()
PLACES = """in a small village|near a dark forest|by the sea|on a green hill|in an old house|at the edge of a big forest|beside a quiet river
in a little town|on a farm|under a tall oak tree|in a valley between two mountains|on a small island|in a busy city|near a blue lake""".replace("\n", "|").split("|")
ADJECTIVES = "little|small|young|old|brave|shy|curious|kind|clever|lazy|happy|lonely|hungry|quiet|cheerful|gentle|proud|sleepy|friendly|careful".split("|")
THINGS = """red ball|golden key|silver bell|blue hat|wooden box|small lantern|shiny stone|warm scarf|magic feather|old map|round cake|glass marble
green umbrella|paper boat|tiny drum|letter|picture book|honey pot|yellow kite|little flute|bright button|brass compass""".replace("\n", "|").split("|")
HELPERS = "old owl|kind hedgehog|wise turtle|friendly crow|little mouse|gentle giant|clever fox|tired traveller|quiet fisherman|young girl|old woman|cheerful baker|small bird|brave boy|big bear".split("|")
WEATHER = "sunny cold windy rainy bright warm grey foggy snowy quiet beautiful".split()

OPENINGS = [
    "Once upon a time[,|] there was {a} {adj} {kind} named {n}, who lived {place}.",
    "Once upon a time, {place}, there lived {a} {adj} {kind}. {His} name was {n}.",
    "Once there was {a} {adj} {kind} called {n}. {He} lived {place}.",
    "There once lived {a} {adj} {kind} {place}. {His} name was {n}, and everybody [liked|knew|loved] {him}.",
    "{n} was {a} {adj} {kind} who lived {place}.",
    "Long ago, {place}, there was {a} {adj} {kind} named {n}.",
    "[One {weather} morning,|It was a {weather} morning when] {n}, {a} {adj} {kind}, woke up very early.",
]
HABITS = [
    "Every [day|morning|evening], {n} [went for a walk|sat in front of the door|looked at the sky|sang a little song|played with {his} {thing}].",
    "More than anything, {n} [loved|liked|treasured] {his} {thing}. {He} took it everywhere.",
    "{n} had many friends, but {his} best friend was {a:helper} {helper}.",
    "{He} was [never|not] afraid of [the dark|the rain|strangers|anything], or so {he} said.",
    "{n} [liked|loved] to [ask questions|help others|collect stones|watch the clouds|listen to the wind].",
]
TROUBLES = {
    "lost": [
        "One {weather} day, {n} [could not find|lost] {his} {thing}. {He} [looked|searched] [under the bed|behind the door|in the garden|in every corner], but it was [gone|not there].",
        "{n} was very [sad|worried] and [sat down|began to cry|did not know what to do]. \"[Where can it be|Where is my {thing}|Who has seen my {thing}]?\" {he} [asked|said].",
        "[Soon|Then|After a while] {a:helper} {helper} came by. \"Why are you so sad?\" asked the {helper}. \"I have lost my {thing},\" said {n}.",
        "\"[Let us look together|I will help you|Two see more than one],\" said the {helper}. They [walked|went] [along the path|to the old bridge|through the tall grass|back to the well] and looked [everywhere|behind every stone|under every bush].",
        "[At last|In the end|Just before dark], they saw something [shine|glitter|move] [in the grass|under a leaf|beside the water]. It was the {thing}!",
        "{n} [jumped for joy|laughed|was so happy that {he} danced]. \"Thank you,\" {he} said. \"[I will never forget this|You are a true friend|Now it is even dearer to me].\"",
    ],
    "storm": [
        "One {weather} evening, a [great|terrible|sudden] storm came [over the hills|from the sea]. The wind [howled|blew|roared] and the rain [fell|poured] [all night|without end].",
        "{n} was [afraid|worried], but then {he} heard a [small|quiet|weak] voice outside. It was {a:helper} {helper}, who was [wet|cold] and [tired|hungry].",
        "\"[Please let me in|May I stay here tonight|I cannot find my way home],\" said the {helper}. {n} [opened the door|did not wait long] and [made a warm fire|cooked some hot soup|gave the {helper} a blanket].",
        "They [sat by the fire|talked] [for a long time|until midnight], and the {helper} told [stories of far lands|a funny story|of many adventures]. [Soon|After some time], nobody thought of the storm any more.",
        "In the morning the sun [was shining|came out]. The {helper} gave {n} {a:thing} {thing} and said, \"[This is for your kindness|Keep it and remember me|It will bring you luck].\"",
        "From that day on, {n} was never afraid of storms again.",
    ],
    "learn": [
        "{n} wanted to [swim|fly|read|sing|dance|climb the highest tree|play the flute|bake bread], but {he} did not know how.",
        "\"[It is too hard for you|You are too small|You will never learn it],\" [said the others|the others laughed]. {n} felt [sad|hurt], but {he} did not give up.",
        "{He} went to {a:helper} {helper} and asked for help. \"[I can show you|Everything can be learned|It takes time],\" said the {helper}, \"but you must [practise every day|be patient|not be afraid to fail].\"",
        "On the first day, {n} [fell down|made many mistakes|did everything wrong]. On the second day, it went a little better. [Every day|Each morning] {he} tried again.",
        "After [three weeks|a month|many days], {n} [could do it|did it for the first time]. The others [could not believe it|were surprised|clapped and cheered].",
        "\"[I am proud of you|You see|Well done],\" said the {helper}. And {n} [smiled|laughed], because {he} knew that [patience is stronger than luck|small steps lead far|nobody is too small to learn].",
    ],
    "journey": [
        "One {weather} morning, {n} found {a:thing} {thing} [in front of the door|on the road|under a tree]. [Beside it lay a note|A note was tied to it]: \"[Bring me home|Please take me to the mountain|I belong to the king].\"",
        "So {n} [packed some bread and cheese|put on a warm coat|said goodbye to everybody] and set out. The way led [over seven hills|through a deep forest|along the river|across a wide field].",
        "On the way {he} met {a:helper} {helper}. \"Where are you going?\" asked the {helper}. \"I am taking this {thing} home,\" [said|answered] {n}. \"[Then I will come with you|May I come, too|That is a long way. Let me help you].\"",
        "Together they [crossed a shaky bridge|slept under the stars|climbed a steep path|walked for two days]. When {n} was tired, the {helper} [told a joke|sang a song|carried the bag].",
        "[At last|Finally|On the third day] they came to [a high tower|a small house with a red roof|a castle on a hill]. An old [man|woman] opened the door and [smiled|laughed]. \"My {thing}! [I have missed it so much|I thought I would never see it again].\"",
        "As a thank-you, {n} and the {helper} got [a warm supper|a bag of apples|a place by the fire]. And on the way home they were [the best of friends|singing all the time].",
    ],
    "share": [
        "One {weather} day, {n} got a big [apple pie|basket of apples|pot of honey|loaf of fresh bread]. \"[It is all mine|I will eat it all alone|Nobody else shall have any],\" {he} said.",
        "Then {a:helper} {helper} came along the road. \"[I have not eaten since yesterday|I am so hungry|It smells so good],\" said the {helper}. \"[May I have a small piece|Would you share with me]?\"",
        "{n} thought about it. [There was a lot of it|It was much too big for one], and the {helper} looked [thin|tired|friendly]. \"[All right|Well|Come here],\" said {n} at last, \"[sit down and eat with me|take as much as you like].\"",
        "They ate and talked and laughed together. [It tasted better than ever before|{n} had never enjoyed a meal so much|Soon nothing was left but crumbs].",
        "The next winter, {n} had nothing to eat, for the snow lay deep. Then somebody knocked at the door. It was the {helper}, with [a full basket|bread and cheese|a big bag of nuts].",
        "\"You shared with me,\" said the {helper}, \"now I share with you.\" And {n} [understood|learned] that [what we give comes back|sharing makes friends|joy grows when it is shared].",
    ],
    "dark": [
        "{n} could not sleep, because it was so dark [in the room|in the house|outside]. Every [night|sound] made {him} [shiver|hide under the blanket].",
        "One night {he} heard [a scratching sound|a soft knock|steps] [at the window|behind the wall|at the door]. {His} heart beat fast. \"Who is there?\" {he} whispered.",
        "\"It is only me,\" said a voice. It was {a:helper} {helper}. \"[I cannot sleep either|I wanted to look at the stars|The night is so beautiful]. Come out with me.\"",
        "{n} took {his} [courage|{thing}] and went outside. The [moon|sky] was [bright|full of light], and a thousand stars [were shining|looked down]. [A warm wind moved the leaves|Far away an owl called].",
        "\"You see,\" said the {helper}, \"[the dark is only the day asleep|the night has its own light|there is nothing to fear].\" They sat together and counted the stars until {n} was tired.",
        "From then on, {n} slept well every night, and sometimes {he} even left the window open, to say good night to the [moon|stars].",
    ],
}
BRIDGES = ["The next day, ", "Some weeks later, ", "But that was not the end of it. ", "A year went by. ", "When spring came, there was a new adventure. ", "Soon after, "]
ENDINGS = ["And so {n} lived happily [ever after|for many years].", "That evening, {n} went to bed with a smile.", "The end.",
           "And if you go there today, you may still [see|meet] {n}.", "And everybody in the neighbourhood still tells this story.", ""]


def article(word):
    return "an" if word[0] in "aeiouAEIOU" else "a"


# How often a tale takes the likelier way: the first wording of a sentence, and what its hero is fond of.
LIKELY = 0.8
FEMALE = "girl queen princess witch hen cow".split()
GENDER = {kind: kind in FEMALE for kind in FEMALE + "boy king prince rooster postman fisherman".split()}


def first_likely(choices, liked):
    """The choices with the liked one in front."""
    return [liked] + [c for c in choices if c != liked]


class Fondness:
    """The things that a kind of hero usually has and meets, so that tales differ from hero to hero."""

    def __init__(self, kind):
        rng = random.Random(kind)
        self.female = GENDER.get(kind, rng.random() < 0.5)
        self.name = rng.choice(GIRLS if self.female else BOYS)
        self.adjective, self.place, self.weather = rng.choice(ADJECTIVES), rng.choice(PLACES), rng.choice(WEATHER)
        self.habit = rng.randrange(len(HABITS))
        self.things, self.plots = rng.sample(THINGS, 3), rng.sample(list(TROUBLES), 3)
        self.helpers = rng.sample([h for h in HELPERS if h.split()[-1] != kind], 4)


FOND = {kind: Fondness(kind) for kind in KINDS}


def kind_of(name, rng):
    """Who usually has the name."""
    return favoured(first_likely(KINDS, random.Random(name).choice(KINDS)), rng, LIKELY)


class Teller:
    """A hero and the things of a tale, and the sentences about them."""

    def __init__(self, rng, kind=None, name=None):
        self.rng = rng
        self.kind = kind or rng.choice(KINDS)
        fond = self.fond = FOND[self.kind]
        female = fond.female if self.kind in GENDER or rng.random() < LIKELY else not fond.female
        names = GIRLS if female else BOYS
        self.name = name or (self.liked(names, fond.name) if female == fond.female else rng.choice(names))
        if name:
            female = name in GIRLS
        self.pronouns = dict(zip(("he", "his", "him"), ("she", "her", "her") if female else ("he", "his", "him")))
        self.adjective, self.place = self.liked(ADJECTIVES, fond.adjective), self.liked(PLACES, fond.place)
        self.thing = self.liked(THINGS, fond.things[0])

    def liked(self, choices, one):
        return favoured(first_likely(choices, one), self.rng, LIKELY)

    def say(self, text, helper):
        p = self.pronouns
        return expand(text, self.rng, LIKELY, **{
            "a": article(self.adjective), "adj": self.adjective, "kind": self.kind, "place": self.place, "n": self.name,
            "weather": self.liked(WEATHER, self.fond.weather),
            "he": p["he"], "his": p["his"], "him": p["him"], "He": p["he"].capitalize(), "His": p["his"].capitalize(),
            "a:helper": article(helper), "helper": helper, "a:thing": article(self.thing), "thing": self.thing})

    def helper(self, number):
        """The one met in an episode; the last of the list is the hero's friend."""
        return self.liked([h for h in HELPERS if h.split()[-1] != self.kind], self.fond.helpers[number])

    def plots(self, count):
        out = []
        for number in range(count):
            out.append(self.liked([p for p in TROUBLES if p not in out], next(p for p in self.fond.plots if p not in out)))
        return out

    def tell(self, episodes=1):
        rng = self.rng
        habits = favoured(first_likely(HABITS, HABITS[self.fond.habit]), rng, LIKELY)
        habits = [habits] + ([rng.choice([h for h in HABITS if h != habits])] if rng.random() > LIKELY else [])
        friend = self.helper(3)
        paragraphs = [" ".join([self.say(favoured(OPENINGS, rng, 0.5), friend)] + [self.say(h, friend) for h in habits])]
        for number, plot in enumerate(self.plots(episodes)):
            if number:
                self.thing = self.liked(THINGS, self.fond.things[number])
            helper = self.helper(number)
            steps = [self.say(step, helper) for step in TROUBLES[plot]]
            if number:
                bridge = favoured(BRIDGES, rng, LIKELY)
                if bridge.endswith(", ") and steps[0].startswith(("One ", "Every ")):
                    bridge = "Then something happened. "
                steps[0] = bridge + steps[0]
            cut = favoured((3, 2, 4), rng, LIKELY)
            paragraphs += [" ".join(steps[:cut]), " ".join(steps[cut:])]
        paragraphs[-1] = f"{paragraphs[-1]} {self.say(favoured(ENDINGS, rng, LIKELY), friend)}".strip()
        # A capital after a full stop, where a slot began the sentence.
        return "\n\n".join(p[0].upper() + p[1:] for p in paragraphs)


ASK = """[tell|write|give|make] [me|us|] a [short|little|small|nice|funny|bedtime|] story about {a} {kind}|[tell|write] [me|] a [short|little|] story with {a} {kind} [in it|]
a story about {a} {kind}|[can|could|would|will] you [please|] [tell|write|make up|invent] [me|] a [short|little|nice|] [story|tale|fairy tale] about {a} {kind}
[i want|i'd like|i would like] [to hear|] a [story|tale] about {a} {kind}|story about {a} {kind}|please [tell|write] [me|] a [story|tale|fairy tale] about {a} {kind}
[once upon a time there was {a} {kind}, go on|a tale of {a} {kind}]|do you know a [story|tale] about {a} {kind}|{a} {kind} story
[make up|invent|think of|compose] a [story|tale] [about|with] {a} {kind}|let me hear a [story|tale] about {a} {kind}|a {kind} tale"""
ASK_ANY = """tell me a story|a story please|story|write a story|another story|can you tell [me|] [a story|stories|a tale]|tell [me|us] a [bedtime story|fairy tale|tale|short story]
i want a story|i want to hear a story|once upon a time|do you know [a story|any stories]|[entertain me|i am bored]|write me [a short story|something|a tale]|make something up"""
ASK_NAME = "tell me a story about {name}|a story about {name}|write a [short|] story about {name}|[tell|write] a tale about {a} {kind} [named|called] {name}|a story about {a} {kind} named {name}"
