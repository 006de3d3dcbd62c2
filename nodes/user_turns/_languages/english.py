"""The language pack of English: acknowledgements, interruptions, unfinished words, noises."""

from __future__ import annotations

from .._language_packs import LanguagePack, phrases

ENGLISH = LanguagePack(
    "en",
    acknowledgements=phrases(
        """
        mhm, mm-hmm, mm hmm, mmhmm, uh-huh, uh huh, uhuh, hm, hmm, mm, mmm, ah, aha, oh, huh, um,
        uh, er, ok, okay, k, yeah, yes, yep, yup, ya, right, all right, alright, sure, good,
        great, cool, nice, perfect, wow, really, exactly, of course, i see, got it, gotcha,
        i understand, understood, makes sense, that makes sense, sounds good, fair enough, go on,
        go ahead, please go on, thank you, thanks, oh my
        """
    ),
    interruptions=phrases(
        """
        stop, wait, hold on, hang on, one moment, one second, just a second, just a moment,
        shut up, be quiet, quiet, silence, excuse me, pause, cancel, never mind, nevermind,
        that's enough, enough already, no no
        """
    ),
    unfinished=phrases(
        """
        a, an, the, my, your, our, their, his, and, or, but, because, if, than, um, uh, er, erm,
        well, you know, i mean, i think, i guess, i believe, would like, id like, i wish, we wish,
        i am looking for, im looking for, can you, could you, would you, do you, did you, can i,
        could i, may i, should i, is there, are there, what is, what are, where is, when is,
        who is, how do i, how can i, where can i, this is, a bit of, tell me, me what, me which,
        me who, know what, know if, whether, some, every, name is, number is, address is,
        thing is, problem is, question is, point is, there is, there are, theres, instead of,
        as well as, such as, for example, such a, kind of a, very, although, unless, except, per,
        versus, as long as, so that, even if, in case, how about a, gonna, would love, with no,
        let me get
        """
    ),
    unfinished_statements=phrases(
        """
        i want, we want, they want, i need, we need, they need, we need to, i need to, i want to,
        want to book, like to book, to get, to have, to buy, to make, to know, to see, to ask,
        can i get, could i get, can i have, could i have, can we have, can we get, may i have,
        will have, ill have, ill take, will take, do you have, have you got, give me, get me,
        show me, let me, in, on, at, of, for, from, with, without, by, about, under, into, until,
        between, near, to, is it, are they, im, were, its, make me, bring me, send me, order me,
        brew me, can i order, could i order, can we order, ill get, ill do, im having, let me try,
        can you get, could you get, can you make, could you make, ive, weve, youve, youre, theyre,
        youll, hes, shes
        """
    ),
    question_words=phrases(
        """
        what, whats, which, who, whos, whom, whose, where, wheres, when, whens, how, hows, why
        """
    ),
    numbers=phrases(
        """
        zero, one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, twenty,
        thirty, forty, fifty, hundred, oh, double, triple, thirteen, fourteen, fifteen, sixteen,
        seventeen, eighteen, nineteen, sixty, seventy, eighty, ninety, thousand
        """
    ),
    articles=phrases(
        """
        a, an, the, one, two, three, four, some, my, any, no, another, this, your, our, their,
        his, with, of, and, or, five, six
        """
    ),
    adjectives=phrases(
        """
        small, medium, large, big, little, tall, short, single, double, triple, extra, light,
        dark, hot, cold, iced, new, old, round, daily, regular, warm, black, white, brown, red,
        green, blue, almond, soy, oat, skim, whole, good, bad, long, whole, full, half, quick,
        different
        """
    ),
    linking_words=phrases(
        """
        is, are, was, were, be, been, its, thats, im, youre, theyre, looks, feels, get, seems,
        too, very, so, really, not, bit, how, as, it
        """
    ),
    units=phrases(
        """
        ounce, pound, inch, foot, mile, minute, hour, day, night, week, month, year, person,
        dollar
        """
    ),
    short_answers=phrases(
        """
        first, second, third, yes, no, nope, nah, none, both, neither, never, more, less, next,
        back, repeat, help
        """
    ),
    noises=phrases(
        """
        ha, haha, ha-ha, heh, hehe, hee, ho, ugh, argh, aah, ahh, ahhh, eh, ehh, ee, euh, eugh,
        ooh, oof, phew, pff, pfft, phh, psst, shh, tsk, brr, grr, achoo, atchoo, hachoo, ahem,
        bleh
        """
    ),
)
