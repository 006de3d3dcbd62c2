"""English."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ._language import Language

if TYPE_CHECKING:
    from ._answer_phrases import AnswerPhrases
    from ._language_pack import LanguagePack
    from ._line_phrases import LinePhrases
    from ._number_forms import NumberForms


class English(Language):
    tag = "en"

    fillers = (
        "One moment.",
        "I am still working on it. Thank you for your patience.",
    )
    apology = "Sorry, something is not working here. Could you say that again, please?"
    in_background = "This takes a little longer. I will tell you as soon as it is done."
    not_understood = (
        "Sorry, I did not catch that.",
        "Sorry, I did not catch that.",
        "I cannot make out any words. I am here when you can.",
    )

    abbreviations = (
        "dr mr mrs ms mx prof st mt ft jr sr vs etc approx dept est inc ltd co corp ave blvd "
        "rd hwy sgt capt col lt maj gen gov cpl pvt cmdr adm rev hon rep sen supt insp messrs "
        "esq cf al viz tel ext jan feb apr aug sept oct nov dec incl excl bros bldg assn univ"
    )
    abbreviations_before_numbers = (
        "no nos num art fig p pp pg vol ch chap sec apt rm cap mar jun jul sep ver ste"
    )
    short_months = "dec"

    @cached_property
    def turn_taking(self) -> LanguagePack:
        from ._language_pack import LanguagePack, listed

        return LanguagePack(
            "en",
            **listed(
                acknowledgements="""
                mhm, mm-hmm, mm hmm, mmhmm, uh-huh, uh huh, uhuh, hm, hmm, mm, mmm, ah, aha, oh,
                huh, um, uh, er, ok, okay, k, yeah, yes, yep, yup, ya, right, all right, alright,
                sure, good, great, cool, nice, perfect, wow, really, exactly, of course, i see, got
                it, gotcha, i understand, understood, makes sense, that makes sense, sounds good,
                fair enough, go on, go ahead, please go on, thank you, thanks, oh my
                """,
                interruptions="""
                stop, wait, hold on, hang on, one moment, one second, just a second, just a moment,
                shut up, be quiet, quiet, silence, excuse me, pause, cancel, never mind, nevermind,
                that's enough, enough already, no no
                """,
                unfinished="""
                a, an, the, my, your, our, their, his, and, or, but, because, if, than, um, uh, er,
                erm, well, you know, i mean, i think, i guess, i believe, would like, id like, i
                wish, we wish, i am looking for, im looking for, can you, could you, would you, do
                you, did you, can i, could i, may i, should i, is there, are there, what is, what
                are, where is, when is, who is, how do i, how can i, where can i, this is, a bit
                of, tell me, me what, me which, me who, know what, know if, whether, some, every,
                name is, number is, address is, thing is, problem is, question is, point is, there
                is, there are, theres, instead of, as well as, such as, for example, such a, kind
                of a, very, although, unless, except, per, versus, as long as, so that, even if, in
                case, how about a, gonna, would love, with no, let me get
                """,
                unfinished_statements="""
                i want, we want, they want, i need, we need, they need, we need to, i need to, i
                want to, want to book, like to book, to get, to have, to buy, to make, to know, to
                see, to ask, can i get, could i get, can i have, could i have, can we have, can we
                get, may i have, will have, ill have, ill take, will take, do you have, have you
                got, give me, get me, show me, let me, in, on, at, of, for, from, with, without,
                by, about, under, into, until, between, near, to, is it, are they, im, were, its,
                make me, bring me, send me, order me, brew me, can i order, could i order, can we
                order, ill get, ill do, im having, let me try, can you get, could you get, can you
                make, could you make, ive, weve, youve, youre, theyre, youll, hes, shes
                """,
                question_words="""
                what, whats, which, who, whos, whom, whose, where, wheres, when, whens, how, hows,
                why
                """,
                numbers="""
                zero, one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve,
                twenty, thirty, forty, fifty, hundred, oh, double, triple, thirteen, fourteen,
                fifteen, sixteen, seventeen, eighteen, nineteen, sixty, seventy, eighty, ninety,
                thousand
                """,
                articles="""
                a, an, the, one, two, three, four, some, my, any, no, another, this, your, our,
                their, his, with, of, and, or, five, six
                """,
                adjectives="""
                small, medium, large, big, little, tall, short, single, double, triple, extra,
                light, dark, hot, cold, iced, new, old, round, daily, regular, warm, black, white,
                brown, red, green, blue, almond, soy, oat, skim, whole, good, bad, long, whole,
                full, half, quick, different
                """,
                linking_words="""
                is, are, was, were, be, been, its, thats, im, youre, theyre, looks, feels, get,
                seems, too, very, so, really, not, bit, how, as, it
                """,
                units="""
                ounce, pound, inch, foot, mile, minute, hour, day, night, week, month, year,
                person, dollar
                """,
                short_answers="""
                first, second, third, yes, no, nope, nah, none, both, neither, never, more, less,
                next, back, repeat, help
                """,
                noises="""
                ha, haha, ha-ha, heh, hehe, hee, ho, ugh, argh, aah, ahh, ahhh, eh, ehh, ee, euh,
                eugh, ooh, oof, phew, pff, pfft, phh, psst, shh, tsk, brr, grr, achoo, atchoo,
                hachoo, ahem, bleh
                """,
            ),
        )

    @cached_property
    def choices(self) -> AnswerPhrases:
        from ._answer_phrases import AnswerPhrases
        from ._language_pack import listed

        return AnswerPhrases(
            **listed(
                never_mind="""
                abort, cancel, cancel it, cancel that, cancel this, drop it, forget about it,
                forget it, forget that, leave it, never mind, nevermind, never mind that, skip it,
                skip that, skip this, stop, stop it
                """,
                polite="""
                actually, ah, just, no, oh, ok, okay, please, so, sorry, thank, thanks, then, uh,
                um, well, you
                """,
                fillers="""
                a, actually, ah, can, choice, er, have, i, id, ill, is, it, just, like, make, no,
                number, oh, ok, okay, option, please, so, sorry, take, thanks, that, the, then, uh,
                um, want, well, with, would
                """,
                ordinals="""
                first, second, third, fourth, fifth, sixth, seventh, eighth, ninth, tenth
                """,
                numbers="one, two, three, four, five, six, seven, eight, nine, ten",
                last="last",
                negations="not, dont, neither",
                alternatives="or, nor",
                yes="""
                absolutely, certainly, correct, definitely, exactly, fine, go ahead, i am, i did, i
                do, i think so, i would, im sure, it is, mhm, not incorrect, not wrong, nothing
                wrong, of course, ok, okay, perfect, please do, right, sounds good, sure, uh huh,
                y, yeah, yep, yes, yup
                """,
                no="""
                cannot, cant, do not, dont, i do not, i dont, i dont think so, im not, incorrect,
                isnt, it is not, it isnt, n, nah, no, nope, not, not at all, not correct, not
                exactly, not fine, not ok, not okay, not right, wasnt, wrong
                """,
                unsure="""
                a moment, a second, cannot hear, cant hear, cannot say, cant say, cant tell, do not
                care, dont care, do not know, dont know, do not mind, dont mind, do not understand,
                dont understand, hold on, no clue, no idea, no preference, not certain, not
                necessarily, not sure, one moment, wait
                """,
                neutral="""
                do not worry, dont worry, no big deal, no bother, no complaints, no doubt, no
                hurry, no matter, no objection, no objections, no offense, no pressure, no problem,
                no problems, no question, no rush, no trouble, no wonder, no worries, not a
                problem, not an issue, not bad, not to worry, why not
                """,
            )
        )

    @cached_property
    def numbers(self) -> NumberForms:
        from ._language_pack import phrases
        from ._number_forms import NumberForms, currencies

        return NumberForms(
            currencies=currencies(
                ("$", "1 dollar", "dollars", "1 cent", "cents"),
                ("€", "1 euro", "euros", "1 cent", "cents"),
                ("£", "1 pound", "pounds", "1 penny", "pence"),
            ),
            joint=" and ",
            months=phrases(
                "January, February, March, April, May, June, July, "
                "August, September, October, November, December"
            ),
            date="{month} {day}, {year}",
            phone=r"\(\d{3}\)[ ]?\d{3}[ -]\d{4}|(?:1-)?(?:\d{3}-)?\d{3}-\d{4}",
            plus="plus",
            scales="thousand|million|billion|trillion",
            thousands=",",
            decimal=".",
            decimal_signs=".",
            pairs=False,
            signs_behind=False,
            unfinished=_UNFINISHED,
        )

    @cached_property
    def line(self) -> LinePhrases:
        from ._language_pack import listed
        from ._line_phrases import LinePhrases

        return LinePhrases(
            **listed(
                keys="""
                zero oh, one, two, three, four, five, six, seven, eight, nine, star asterisk,
                pound hash
                """,
                voicemail="""
                after the tone, after the beep, at the tone, at the beep, after the signal, hear
                the tone, hear the beep, hears the tone, leave a message, leave your message,
                leave me a message, leave us a message, leave a brief message, leave a short
                message, leave a detailed message, leave your name, leave me your name, leave us
                your name, leave a voicemail, leave me a voicemail, record your message, voice
                mail, voicemail, voice mailbox, mailbox is full, mailbox of, answering machine,
                answering service, cant take your call, cannot take your call, cant come to the
                phone, cannot come to the phone, unable to take your call, unable to come to the
                phone, unable to answer, not able to take your call, cant answer, cannot answer,
                missed your call, you have reached the voice, not available right now, is not
                available, isnt available, is unavailable, are unavailable, im not available,
                nobody is available, no one is available, not here right now, not home, not in
                right now, not at my desk, away from my desk, get back to you, call you back,
                return your call, is on the phone, out of the office
                """,
                menu="""
                press #, dial #, press the ~ key, followed by the ~ key, # for ~ # for, listen to
                the following, following options, menu options, our menu, main menu, options have
                changed, para espanol, say or press, press or say, enter your, please enter, enter
                the, enter a, if you know your partys, partys extension, in a few words, you can
                say, automated attendant, automated system, touch tone, touchtone
                """,
                screening="""
                at the tone ~ say your name, after the tone ~ say your name,
                screening service, call screening, is screening, screen calls, screening your
                call, say your name, state your name, record your name, your name and why, your
                name and reason, name and the reason, reason for calling, reason for your call,
                why youre calling, why you are calling, who is calling please, whos calling
                please, call assist, see if this person is available, see if they are available,
                do not accept unidentified, does not accept unidentified, does not accept unknown,
                does not accept anonymous, privacy manager, caller waiting who introduces
                """,
                waiting="""
                please hold, please stay on the line, remain on the line, hold the line, hold
                time, wait time, next available, currently busy, in the queue, in the order,
                caller number, first in line, your call is important, will be answered, waiting to
                speak, for your patience, thank you for holding, continue to hold
                """,
                person="""
                how can i help, how may i help, can i help you, what can i do for you, who is
                this, whos this, who am i speaking, who am i talking, whos calling, speaking who,
                this is he, this is she, what do you want, can you hear me, are you there, hello
                hello
                """,
            )
        )


_UNFINISHED = (
    r"(?:(?<=\s)|^)(?:[$€£](?:\d[\d,.]*)?(?:[ ][a-z]{0,8})?|\d[\d-]*|\+[\d ()-]*|\(\d*\)?[\d -]*)\Z"
)


LANGUAGE = English()
