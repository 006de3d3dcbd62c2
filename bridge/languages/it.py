"""Italian."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ._language import Language

if TYPE_CHECKING:
    from ._answer_phrases import AnswerPhrases
    from ._line_phrases import LinePhrases
    from ._number_forms import NumberForms


class Italian(Language):
    tag = "it"

    fillers = (
        "Un momento, per favore.",
        "Ci sto ancora lavorando. Grazie della pazienza.",
    )
    apology = "Mi scusi, qualcosa non funziona. Può ripetere, per favore?"
    in_background = "Ci vuole ancora un po'. La avviso appena ho finito."
    not_understood = (
        "Mi scusi, non ho capito.",
        "Mi scusi, non ho capito.",
        "Non riesco a distinguere le parole. Sono qui quando può.",
    )

    abbreviations = "sig dott avv geom spett egr gent ecc"
    abbreviations_before_numbers = "art cap"

    @cached_property
    def choices(self) -> AnswerPhrases:
        from ._answer_phrases import AnswerPhrases
        from ._language_pack import listed

        return AnswerPhrases(
            **listed(
                never_mind="""
                annulla, annulli, basta, fa niente, fa lo stesso, lascia perdere, lasci perdere,
                lascia stare, lasci stare, non fa niente, non importa, stop
                """,
                polite="""
                ah, allora, beh, ehm, favore, grazie, mi, no, oh, ok, per, prego, scusa, scusi, sì,
                va, bene
                """,
                fillers="""
                ah, allora, beh, con, di, e, è, ehm, favore, grazie, il, io, l, la, le, lo, i, mi,
                no, numero, oh, ok, opzione, per, piacerebbe, prendo, preferisco, quella, quello,
                scelgo, scusi, sì, vorrei, voglio, bene, va
                """,
                ordinals="""
                primo prima, secondo seconda, terzo terza, quarto quarta, quinto quinta, sesto
                sesta, settimo settima, ottavo ottava, nono nona, decimo decima
                """,
                numbers="uno una un, due, tre, quattro, cinque, sei, sette, otto, nove, dieci",
                last="ultimo, ultima",
                negations="non, né, nessuno, nessuna",
                alternatives="o, oppure, né",
                yes="""
                assolutamente, certamente, certo, come no, corretto, d'accordo, è così, è giusto,
                esatto, esattamente, giusto, mhm, naturalmente, ok, okay, perfetto, proprio così,
                senz'altro, sì, sicuro, va bene, volentieri, faccia pure
                """,
                no="""
                assolutamente no, certo che no, direi di no, non è così, non è giusto, non
                esattamente, no, non, non va bene, non voglio, per niente, per nulla, sbagliato,
                falso
                """,
                unsure="""
                aspetta, aspetti, fa lo stesso, forse, mi è indifferente, non capisco, non lo so,
                non ne ho idea, non saprei, non so, non sono sicura, non sono sicuro, nessuna idea,
                un attimo, un momento
                """,
                neutral="""
                di niente, nessun problema, non c'è fretta, non c'è problema, non è male, non è un
                problema, non importa, non male, non si preoccupi, non ti preoccupare, perché no,
                senza problemi
                """,
            )
        )

    @cached_property
    def numbers(self) -> NumberForms:
        from ._language_pack import phrases
        from ._number_forms import BY_SLASHES, LOCAL_PHONE, NumberForms, currencies

        return NumberForms(
            currencies=currencies(
                ("€ EUR euro", "un euro", "euro", "un centesimo", "centesimi"),
                ("$ USD dollari dollaro", "un dollaro", "dollari", "un centesimo", "centesimi"),
                ("£ GBP sterline sterlina", "una sterlina", "sterline", "un penny", "pence"),
                ("CHF franchi franco", "un franco", "franchi", "un centesimo", "centesimi"),
            ),
            joint=" e ",
            months=phrases(
                "gennaio, febbraio, marzo, aprile, maggio, giugno, luglio, "
                "agosto, settembre, ottobre, novembre, dicembre"
            ),
            date="{day} {month} {year}",
            numeric_date=BY_SLASHES,
            phone=LOCAL_PHONE,
            plus="più",
            scales="mila|milioni|milione|miliardi|miliardo",
            of=" di ",
            first_day="primo",
        )

    @cached_property
    def line(self) -> LinePhrases:
        from ._language_pack import listed
        from ._line_phrases import LinePhrases

        return LinePhrases(
            **listed(
                keys="""
                zero, uno un, due, tre, quattro, cinque, sei, sette, otto, nove, asterisco stella,
                cancelletto
                """,
                voicemail="""
                dopo il segnale, dopo il bip, dopo il tono, dopo il beep, al segnale acustico,
                lasciare un messaggio, lasciare il messaggio, lasci un messaggio, lascia un
                messaggio, lasciate un messaggio, lasciateci un messaggio, lasciare il suo,
                lasciare nome, lasciate il vostro, segreteria, casella vocale, posta vocale, non è
                disponibile, non sono disponibile, non siamo disponibili, non è raggiungibile, non
                raggiungibile, non posso rispondere, non possiamo rispondere, non può rispondere,
                in grado di rispondere, non sono in casa, non siamo in casa, è al telefono,
                richiamerò, richiameremo, la ricontatt, al momento non, in questo momento non,
                registra il messaggio, registri il suo messaggio
                """,
                menu="""
                premere #, prema #, premi #, premete #, digitare #, digiti #, digita #, selezioni
                #, premere il, prema il, premi il, premere per, premere asterisco, premere
                cancelletto, il tasto, digitare il, digitare un, digitare le, digiti il, inserire
                il, immetta, immettere, scelga, le seguenti opzioni, seguenti opzioni, opzioni
                disponibili, menu principale, menù principale, il numero di interno, dica o
                """,
                screening="""
                dopo il segnale ~ dica il suo nome, dopo il segnale ~ dire il suo nome,
                dica il suo nome, dire il suo nome, dica nome, di il tuo nome, il suo nome e ~
                motivo, nome e motivo, motivo della chiamata, perché chiama, chi parla per favore,
                filtro chiamate, filtra le chiamate, non accetta chiamate, chiamate anonime,
                vedere se è disponibile, vedo se è disponibile, si è presentato
                """,
                waiting="""
                prego attendere, attendere prego, attenda, attendi, attendere mentre, rimanga in
                linea, resti in linea, resta in linea, rimanga cortesemente, tempo di attesa, in
                attesa, primo operatore, operatori sono, si libera un operatore, prima in lista,
                chiamante numero, per la pazienza, la tua pazienza, sua pazienza
                """,
                person="""
                come posso aiutar, posso aiutarla, in cosa posso, chi parla, chi è, con chi parlo,
                mi sente, cosa desidera, pronto pronto, sono io
                """,
            )
        )


LANGUAGE = Italian()
