"""The language pack of French: acknowledgements, interruptions, unfinished words, noises."""

from __future__ import annotations

from .._language_packs import LanguagePack, phrases

FRENCH = LanguagePack(
    "fr",
    acknowledgements=phrases(
        """
        mhm, hm, hmm, mm, ah, ah bon, ah oui, oh, euh, oui, ouais, ouaip, ok, okay, d'accord,
        d accord, bien, très bien, bon, c'est bon, c'est ça, voilà, parfait, super, exactement,
        bien sûr, je vois, je comprends, compris, entendu, ça marche, allez-y, continuez
        """
    ),
    interruptions=phrases(
        """
        stop, arrête, arrêtez, attends, attendez, un instant, un moment, une seconde, une minute,
        minute, silence, tais-toi, taisez-vous, excusez-moi, pardon, annule, annulez,
        laisse tomber, laissez tomber, ça suffit, non non
        """
    ),
    unfinished=phrases(
        """
        un, une, des, du, de, le, la, au, aux, mon, ma, mes, notre, nos, votre, vos, son, sa, ses,
        et, ou, mais, parce que, que, qui, si, euh, ben, enfin, je voudrais, je veux, j'aimerais,
        nous voudrions, on voudrait, j'ai besoin de, je cherche, je prends, je vais prendre,
        est-ce que, est-ce que je peux, est-ce que vous avez, je pense, je crois, je m'appelle,
        mon nom est, le problème est, il y a, c'est un, c'est une, pour, dans, sur, chez, sans,
        entre, en, à, très, plutôt que, au lieu de
        """
    ),
    unfinished_statements=phrases(
        """
        avez-vous, vous avez, donnez-moi, dites-moi, pouvez-vous me, pourriez-vous me, avec,
        je suis
        """
    ),
    question_words=phrases(
        """
        quoi, quel, quelle, quels, quelles, qui, où, quand, comment, pourquoi, combien
        """
    ),
    numbers=phrases(
        """
        zéro, un, deux, trois, quatre, cinq, six, sept, huit, neuf, dix, onze, douze, vingt,
        treize, quatorze, quinze, seize, trente, quarante, cinquante, cent
        """
    ),
    articles=phrases(
        """
        un, une, le, la, les, deux, trois, des, du, mon, ma, mes, votre, quatre, cinq, avec, de,
        et, ou
        """
    ),
    adjectives=phrases(
        """
        petit, petite, grand, grande, double, simple, nouveau, nouvelle, petits, petites, grands,
        grandes, gros, grosse, bon, bonne, beau, belle, vieux, vieille, jeune, long, longue,
        nouveaux, nouvelles, premier, première, dernier, dernière, demi
        """
    ),
    short_answers=phrases(
        """
        oui, non, si, aucun, encore, plus, moins, retour, aide
        """
    ),
    noises=phrases(
        """
        ha, haha, hihi, hé, ho, ouf, pff, pfft, pst, chut, beurk, atchoum, ahem
        """
    ),
)
