"""The language pack of Spanish: acknowledgements, interruptions, unfinished words, noises."""

from __future__ import annotations

from .._language_packs import LanguagePack, phrases

SPANISH = LanguagePack(
    "es",
    acknowledgements=phrases(
        """
        mhm, ajá, aja, hm, hmm, mm, ah, oh, eh, sí, sip, ok, okay, okey, vale, bueno, bien,
        muy bien, está bien, claro, claro que sí, por supuesto, de acuerdo, correcto, exacto,
        perfecto, genial, ya, ya veo, entiendo, entendido, comprendo, así es, siga, sigue
        """
    ),
    interruptions=phrases(
        """
        para ya, pare, alto, basta, espera, espere, un momento, un segundo, un minuto, momento,
        detente, deténgase, silencio, cállate, cállese, perdón, disculpe, cancela, cancele,
        olvídalo, no no
        """
    ),
    unfinished=phrases(
        """
        un, una, unos, unas, el, los, las, del, al, de, mi, mis, su, sus, nuestro, nuestra, y, o,
        pero, porque, si, que, eh, este, pues, quisiera, me gustaría, querría, necesito,
        necesitamos, busco, voy a tomar, me da, me puede, me podría, puede darme, podría darme,
        dígame, creo, creo que, pienso que, me llamo, mi nombre es, el número es, el problema es,
        la cosa es, hay, para, con, sin, por, en, entre, a, muy, en vez de, en lugar de
        """
    ),
    unfinished_statements=phrases(
        """
        quiero, queremos, tienen, tiene, tienes, tengo, deme, dame, es, soy
        """
    ),
    question_words=phrases(
        """
        qué, cuál, cuáles, quién, quiénes, dónde, adónde, cuándo, cómo, cuánto, cuánta, cuántos,
        cuántas
        """
    ),
    numbers=phrases(
        """
        cero, uno, una, dos, tres, cuatro, cinco, seis, siete, ocho, nueve, diez, once, doce,
        veinte, trece, catorce, quince, treinta, cuarenta, cincuenta, cien
        """
    ),
    articles=phrases(
        """
        un, una, el, la, los, las, dos, tres, unos, unas, mi, su, cuatro, cinco, con, de, y, o
        """
    ),
    adjectives=phrases(
        """
        pequeño, pequeña, gran, doble, nuevo, nueva, buen, buena, primer, tercer, mal, viejo,
        vieja, largo, larga, medio, media
        """
    ),
    short_answers=phrases(
        """
        sí, no, nada, ambos, más, menos, atrás, ayuda
        """
    ),
    noises=phrases(
        """
        ja, jaja, jajaja, jeje, jiji, uf, buf, pff, pfft, pst, achís, ejem
        """
    ),
)
