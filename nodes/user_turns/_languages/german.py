"""The language pack of German: acknowledgements, interruptions, unfinished words, noises."""

from __future__ import annotations

from .._language_packs import LanguagePack, phrases

GERMAN = LanguagePack(
    "de",
    acknowledgements=phrases(
        """
        mhm, mhmm, hm, hmm, aha, ah, ach, ach so, achso, oh, äh, ähm, ja, jo, jap, jawohl, okay,
        ok, gut, sehr gut, alles klar, klar, na klar, in ordnung, richtig, stimmt, genau,
        genau so, verstehe, ich verstehe, verstanden, super, toll, prima, schön, natürlich,
        sicher, weiter
        """
    ),
    interruptions=phrases(
        """
        stopp, stop, halt, warte, warten sie, moment, einen moment, moment mal, augenblick,
        sekunde, ruhe, sei still, seien sie still, aufhören, hör auf, hören sie auf,
        entschuldigung, abbrechen, vergiss es, es reicht, nein nein
        """
    ),
    unfinished=phrases(
        """
        ein, eine, einen, einem, einer, eines, der, den, dem, des, mein, meine, meinen, meinem,
        meiner, unser, unsere, unseren, ihre, ihren, und, oder, aber, weil, dass, ob, wenn, äh,
        ähm, also ich, ich möchte gern, ich hätte gern, ich hätte gerne, ich brauche,
        wir brauchen, ich suche, wir suchen, ich nehme, wir nehmen, können sie mir,
        könnten sie mir, kannst du mir, geben sie mir, sagen sie mir, ich glaube, ich denke,
        ich meine, name ist, nummer ist, adresse ist, problem ist, frage ist, es gibt, für, von,
        im, zum, zur, beim, vom, am, gegen, ohne, zwischen, sehr, statt, anstatt
        """
    ),
    unfinished_statements=phrases(
        """
        ich möchte, wir möchten, ich will, haben sie, hast du, gibt es, ich habe, wir haben, in,
        bei, nach, ich heiße
        """
    ),
    question_words=phrases(
        """
        was, welche, welcher, welches, wer, wen, wem, wessen, wo, wohin, woher, wann, wie, warum,
        wieso
        """
    ),
    numbers=phrases(
        """
        null, eins, zwei, zwo, drei, vier, fünf, sechs, sieben, acht, neun, zehn, elf, zwölf,
        zwanzig, dreizehn, vierzehn, fünfzehn, sechzehn, siebzehn, achtzehn, neunzehn, dreißig,
        vierzig, fünfzig, hundert
        """
    ),
    articles=phrases(
        """
        ein, eine, einen, einem, einer, der, die, das, den, zwei, drei, vier, fünf, mein, meine,
        meinen, ihr, ihre, ihren, kein, keine, keinen, mit, und, oder, noch
        """
    ),
    adjectives=phrases(
        """
        kleine, kleinen, kleiner, kleines, große, großen, großer, großes, mittlere, mittleren,
        doppelte, doppelten, einfache, einfachen, heiße, heißen, kalte, kalten, neue, neuen,
        kleinem, großem, mittlerer, mittleres, doppelter, doppeltes, einfacher, einfaches, heißer,
        heißes, kalter, kaltes, neuer, neues, alte, alten, alter, altes, lange, langen, langer,
        langes, kurze, kurzen, kurzer, kurzes, gute, guten, guter, gutes, ganze, ganzen, ganzer,
        ganzes, halbe, halben, halber, halbes, frische, frischen, frischer, frisches, warme,
        warmen, warmer, warmes, starke, starken, starker, starkes, dunkle, dunklen, dunkler,
        dunkles, helle, hellen, heller, helles, schwarze, schwarzen, schwarzer, schwarzes, weiße,
        weißen, weißer, weißes, rote, roten, roter, rotes, grüne, grünen, grüner, grünes, blaue,
        blauen, blauer, blaues, normale, normalen, normaler, normales
        """
    ),
    linking_words=phrases(
        """
        ist, sind, war, waren, sehr, zu, so, ganz, wie
        """
    ),
    short_answers=phrases(
        """
        ja, nein, nee, nö, doch, keins, beide, weiter, zurück, mehr, weniger, hilfe
        """
    ),
    noises=phrases(
        """
        ha, haha, hehe, hihi, ho, uff, puh, pff, pfft, pst, psch, tss, brr, hatschi, ähem, seufz
        """
    ),
)
