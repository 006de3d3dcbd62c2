"""The phrases that the café knows: what they do, and what they name.

The longest matching phrase counts; commas separate phrases. Words without a meaning for an order
are of kind "skip"; words that are not listed are unknown.
"""

SIGNS = {
    "skip": """
        i, me, we, us, you, he, she, they, am, was, be, do, can, could, may, will, would, shall,
        should, let, have, has, had, got, go, going, gonna, please, really, very, well, like, love,
        maybe, perhaps, then, there, here, so, today, now, to go, for here, to take away, to take
        out, think, guess, suppose, know, see, cup, cups, mug, mugs, of, nice, hot, warm, fresh,
        plain, normal, sized, size, quickly, again, still, for me, up, if, even, my bad, no problem,
        no worries, no rush, not bad, who, worth, after all, anymore, any more, any longer, thing,
        sir, quantity, number, as, any, when, order to, to order, people, orders, kind of, sort of,
        put, leave, use, yourself, how are you, nice to meet you, change of plan, change of plans,
        not only, in total, total of, total, myself, nearly, what else
    """,
    "want": """
        want, wants, need, needs, order, take, give, bring, get, grab, gimme, lemme, wanna, how
        about, what about, why not, would like, do not forget, may as well
    """,
    "add": "add, plus, put in, throw in",
    "also": "also, too, as well, on top, in addition",
    "and": "and, with, &",
    "for": "for, by, at, on, in",
    "from": "from",
    "or": "or",
    "but": "but",
    "just": "just, only",
    "enough": "enough, is enough, are enough, will do, will be enough",
    "no": "no, nope, nah, no no",
    "not": "not, never, nor",
    "keep": """
        keep, do not remove, do not cancel, do not change, do not leave out, leave in, do not take
        off, do not drop
    """,
    "remove": """
        no to, forget what i said about, leave out, leave off, take off, take out, take away,
        remove, drop, skip, delete, lose, minus, without, hold, cancel, scratch, strike, forget,
        forget about, get rid of, cut, changed my mind about, no longer want, no need for, minus
        the, do not bother with
    """,
    "no more": "no more",
    "out": "out, off, away, removed, left out, taken off, cancelled, can go",
    "instead": "instead, rather, prefer",
    "mean": """
        i mean, i meant, i said, said, i asked for, asked for, i ordered, ordered, on second
        thought, on second thoughts, changed my mind, correction, or rather, better
    """,
    "should be": "should be, should have been, supposed to be, needs to be, has to be",
    "wait": """
        wait, stop, actually, sorry, hold on, hang on, oops, whoops, wait a minute, wait a second
    """,
    "wrong": """
        wrong, too big, too large, too small, too many, too much, that is wrong, that is not right,
        not right, not what i ordered, all wrong, not what i said, not what i wanted, incorrect, not
        correct, that is all wrong, change my order
    """,
    "instead of": "instead of, rather than, in place of, than",
    "make": "make",
    "change": "change, switch, swap, replace, turn, exchange, trade, substitute, upgrade, convert",
    "to": "to, into",
    "undo": """
        scratch that, cancel that, forget that, forget it, never mind, nevermind, undo, undo that,
        strike that, delete that, take that back, scratch it
    """,
    "clear": """
        forget it all, start over, start again, start from scratch, from scratch, new order, nothing
        at all, do not want anything, clear, from the beginning, do not want anything anymore
    """,
    "except": """
        everything but, everything except, everything but for, all but, all except, anything but,
        anything except
    """,
    "not all": "that is not all, not all, that is not it, not yet, not done, not finished",
    "done": """
        that is all, that is it, that is everything, that will be all, that will be it, that will be
        everything, that will do, that would be all, that would be it, nothing, nothing else,
        nothing more, am done, are done, done, finished, all done, am good, are good, all good, am
        fine, am okay, all set, just that, only that, bye, goodbye, bye bye, see you, have a nice
        day, have a good day, have a good one, no more thank you, do not need anything else, do not
        want anything else, not anything else, check out, pay, leave it at that, that is my order,
        am all set, that was all, that was it, that was everything, that completes my order, do not
        need anything more, nothing for me, no more no, that is the order, that concludes my order,
        wrap up, wrap it up, would be all, will be all
    """,
    "thanks": """
        thank you, thanks, thank you very much, thanks a lot, thank you so much, cheers, many
        thanks, ta
    """,
    "yes": "yes, yeah, yep, yup, sure, of course, yes it is, absolutely, definitely, go ahead",
    "fine": """
        correct, exactly, that is right, that is correct, okay, ok, right, alright, all right,
        great, perfect, cool, fine, good, sounds good, looks good, lovely, wonderful, super,
        excellent, that is fine, that is good, that is perfect, that is great, mm hmm, mhm
    """,
    "pause": """
        one moment, a moment, one second, a second, a sec, one sec, one minute, a minute, not sure,
        do not know, no idea, let me think, let me see, still thinking, help, not really sure
    """,
    "hello": "hi, hello, hey, good morning, good afternoon, good evening, hello there, hi there",
    "repeat": """
        what did i order, what do i have, what have i ordered, what is my order, my order so far,
        what is in my order, repeat, repeat that, repeat my order, repeat the order, say that again,
        read it back, read my order back, read that back, read back my order, pardon, come again,
        what was that, what did you say, excuse me, is that all, is that it, what have you got so
        far, what do you have so far, what did you get, one more time, what have i got, read back
        the order, what is the order, check my order, what was my order
    """,
    "total": """
        how much is that, how much is it, how much does that cost, how much will that be, what do i
        owe, what does that come to, what is the total, how much do i owe, how much is everything,
        how much altogether, how much is the total, what does it cost, what is my total, how much
        does it cost, how much is that altogether, how much in total, how much would that be, the
        total, how much is my order, what does that cost, how much does that come to, how much is it
        all, how much is all of that, how much for everything
    """,
    "is": "is, are, does, did",
    "offer": """
        do you have, have you got, is there, are there, do you sell, do you serve, do you do, do you
        offer, do you also have, got any, what about your
    """,
    "ask": """
        what, which, how much, how many, what is, how big, where, when is, why, price of, cost of,
        price, cost, prices, on the menu, menu, what do you have, what kind of, what kinds of, what
        sizes, which sizes, what size, tell me about
    """,
}
NAMES = {  # a kind, and which one
    ("size", "small"): "small, little, tiny, smallest",
    ("size", "medium"): "medium, regular, mid, middle",
    ("size", "large"): "large, big, huge, largest, biggest",
    ("size", "smaller"): "smaller",
    ("size", "larger"): "larger, bigger",
    ("item", "latte"): "latte, caffe latte, cafe latte, coffee latte, late latte, latee, lattee",
    ("item", "cappuccino"): "cappuccino, cap, capp",
    ("item", "espresso"): "espresso",
    ("item", "mocha"): "mocha, moca, mocca, mokka, moka, mocka, caffe mocha, cafe mocha",
    ("item", "tea"): "tea",
    ("item", "blueberry muffin"): "blueberry muffin, blue berry muffin, muffin, blueberry, muffen",
    ("item", "croissant"): "croissant",
    ("item", "cookie"): "cookie, cooky, cookey",
    ("kind", "coffee"): "coffee",
    ("kind", "drink"): "drink, beverage, something to drink",
    ("kind", "food"): """
        cake, pastry, pastrie, food, snack, something to eat, something sweet, anything sweet,
        anything to eat
    """,
    ("ref", "it"): "it, that one, this one, the one",
    ("ref", "that"): "that, this",
    ("ref", "those"): "those, these, both, all",
    ("ref", "them"): """
        them, they all, both of them, all of them, all of those, each of them, the two of them, them
        both, them all, these two, those two
    """,
    ("ref", "all"): """
        everything, my order, the order, the whole order, the whole thing, all of it, it all, all of
        that, the entire order, my whole order, every single thing, the lot, my entire order, all
        that
    """,
    ("ref", "other"): "the other one, the other, other one, the others, the other ones",
    ("ref", "first"): "the first one, the first, first one, the first item",
    ("ref", "second"): "the second one, the second, second one, the second item",
    ("ref", "last"): "the last one, the last, last one, the last item, the last thing",
    ("a", ""): "a, an",
    ("the", ""): "the, my, your, our",
    ("some", ""): "some, a few, several, a bunch of, few, many, lots of, a lot of",
    ("one of", ""): "of the, of them, of those, of my, of these",
    ("each", ""): "of each, each, of both, a piece, apiece",
    ("each", "all"): "of everything, of all, of each thing",
    ("extra", "hot chocolate"): "hot chocolate, hot chocolates",
    ("more", ""): "more, another, extra, additional, other",
    ("more", "less"): "less, fewer",
    ("more one", ""): "another one",
    ("same", ""): """
        same again, the same again, the same, same, same thing, the same thing, the same thing
        again, the usual same
    """,
    ("ones", ""): "ones",
    ("count", "2"): "a couple, a couple of, couple, couple of, a pair of, pair of, twice",
    ("count", "6"): "half a dozen, half dozen",
    ("count", "12"): "a dozen, dozen",
    ("count", "0"): "none, none of",
    ("count", "100"): """
        hundred, a hundred, thousand, a thousand, million, a million, thirty, forty, fifty, sixty,
        seventy, eighty, ninety
    """,
}
# Requests after the name of a drink: not on the menu, but never ignored.
EXTRAS = """
    double, triple, single, iced, decaf, decaffeinated, skinny, milk, oat milk, soy milk, almond
    milk, oat, soy, sugar, cream, whipped cream, syrup, vanilla, caramel, honey, lemon,
    cinnamon, foam, ice, gluten free, vegan
"""
DISFLUENCIES = "um, umm, uh, uhh, uhm, er, erm, ah, oh, hm, hmm, mm, eh"
SPELT = {  # without apostrophes, as recognisers write them
    "dont": "do not",
    "cant": "can not",
    "wont": "will not",
    "didnt": "did not",
    "im": "i am",
    "doesnt": "does not",
    "isnt": "is not",
    "thats": "that is",
    "thatll": "that will",
    "whats": "what is",
    "ill": "i will",
    "id": "i would",
    "ive": "i have",
    "lets": "let us",
    "can't": "can not",
    "won't": "will not",
    "cannot": "can not",
    "were": "we are",
    "its": "it is",
    "hows": "how is",
    "wanna": "want",
    "thatd": "that would",
}
ENDINGS = {
    "n't": " not",
    "'d": " would",
    "'ll": " will",
    "'m": " am",
    "'re": " are",
    "'ve": " have",
    "'s": " is",
}
LONG_NAMES = (
    "cappuccino",
    "espresso",
    "croissant",
    "blueberry",
)  # often misspelt
