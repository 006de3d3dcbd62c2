"""Spanish."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ._language import Language

if TYPE_CHECKING:
    from ._answer_phrases import AnswerPhrases
    from ._language_pack import LanguagePack
    from ._line_phrases import LinePhrases
    from ._number_forms import NumberForms


class Spanish(Language):
    tag = "es"

    fillers = (
        "Un momento, por favor.",
        "Sigo en ello. Gracias por su paciencia.",
    )
    apology = "Perdón, algo no funciona aquí. ¿Puede repetirlo, por favor?"
    in_background = "Esto tarda un poco más. Le aviso en cuanto esté listo."
    not_understood = (
        "Perdón, no le he entendido.",
        "Perdón, no le he entendido.",
        "No consigo distinguir ninguna palabra. Aquí estoy cuando pueda.",
    )

    abbreviations = "sra sres srta dra dña ud uds vd vds lic arq avda aprox pág núm depto dpto"
    abbreviations_before_numbers = "nro cap"

    @cached_property
    def turn_taking(self) -> LanguagePack:
        from ._language_pack import LanguagePack, listed

        return LanguagePack(
            "es",
            **listed(
                acknowledgements="""
                mhm, ajá, aja, hm, hmm, mm, ah, oh, eh, sí, sip, ok, okay, okey, vale, bueno, bien,
                muy bien, está bien, claro, claro que sí, por supuesto, de acuerdo, correcto,
                exacto, perfecto, genial, ya, ya veo, entiendo, entendido, comprendo, así es, siga,
                sigue
                """,
                interruptions="""
                para ya, pare, alto, basta, espera, espere, un momento, un segundo, un minuto,
                momento, detente, deténgase, silencio, cállate, cállese, perdón, disculpe, cancela,
                cancele, olvídalo, no no
                """,
                unfinished="""
                un, una, unos, unas, el, los, las, del, al, de, mi, mis, su, sus, nuestro, nuestra,
                y, o, pero, porque, si, que, eh, este, pues, quisiera, me gustaría, querría,
                necesito, necesitamos, busco, voy a tomar, me da, me puede, me podría, puede darme,
                podría darme, dígame, creo, creo que, pienso que, me llamo, mi nombre es, el número
                es, el problema es, la cosa es, hay, para, con, sin, por, en, entre, a, muy, en vez
                de, en lugar de
                """,
                unfinished_statements="""
                quiero, queremos, tienen, tiene, tienes, tengo, deme, dame, es, soy
                """,
                question_words="""
                qué, cuál, cuáles, quién, quiénes, dónde, adónde, cuándo, cómo, cuánto, cuánta,
                cuántos, cuántas
                """,
                numbers="""
                cero, uno, una, dos, tres, cuatro, cinco, seis, siete, ocho, nueve, diez, once,
                doce, veinte, trece, catorce, quince, treinta, cuarenta, cincuenta, cien
                """,
                articles="""
                un, una, el, la, los, las, dos, tres, unos, unas, mi, su, cuatro, cinco, con, de,
                y, o
                """,
                adjectives="""
                pequeño, pequeña, gran, doble, nuevo, nueva, buen, buena, primer, tercer, mal,
                viejo, vieja, largo, larga, medio, media
                """,
                short_answers="sí, no, nada, ambos, más, menos, atrás, ayuda",
                noises="ja, jaja, jajaja, jeje, jiji, uf, buf, pff, pfft, pst, achís, ejem",
            ),
        )

    @cached_property
    def choices(self) -> AnswerPhrases:
        from ._answer_phrases import AnswerPhrases
        from ._language_pack import listed

        return AnswerPhrases(
            **listed(
                never_mind="""
                anula, cancela, cancelar, cancele, da igual, déjalo, déjelo, no importa, nada,
                olvídalo, olvídelo, para, pare
                """,
                polite="""
                ah, ay, bueno, eh, favor, gracias, lo, no, oh, ok, pues, perdón, por, siento, sí,
                ya, este
                """,
                fillers="""
                a, ah, bueno, con, de, del, eh, el, ella, elijo, es, este, eso, favor, gracias, la,
                lo, los, las, me, mejor, no, número, oh, ok, opción, por, prefiero, pues, quería,
                querría, quiero, quisiera, sería, sí, tomo, ya, gustaría, y
                """,
                ordinals="""
                primero primera primer, segundo segunda, tercero tercera tercer, cuarto cuarta,
                quinto quinta, sexto sexta, séptimo séptima, octavo octava, noveno novena, décimo
                décima
                """,
                numbers="uno una un, dos, tres, cuatro, cinco, seis, siete, ocho, nueve, diez",
                last="último, última",
                negations="no, ni, ningún, ninguno, ninguna, tampoco",
                alternatives="o, ni",
                yes="""
                absolutamente, adelante, así es, bien, bueno, cierto, claro, claro que sí, con
                gusto, correcto, creo que sí, de acuerdo, desde luego, es correcto, está bien,
                exactamente, exacto, mhm, ok, okay, perfecto, por supuesto, seguro, sí, vale, sip
                """,
                no="""
                claro que no, creo que no, de ninguna manera, en absoluto, es incorrecto, falso,
                incorrecto, no, no es, no es correcto, no está bien, no exactamente, no quiero,
                nada de eso, para nada, por supuesto que no, qué va, tampoco
                """,
                unsure="""
                espera, espere, me da igual, me es igual, ni idea, no entiendo, no estoy segura, no
                estoy seguro, no lo sé, no sé, no puedo decir, quizás, tal vez, un momento, un
                segundo
                """,
                neutral="""
                cómo no, no es problema, no está mal, no hay de qué, no hay prisa, no hay problema,
                no importa, no pasa nada, no se preocupe, no te preocupes, por qué no, sin problema
                """,
            )
        )

    @cached_property
    def numbers(self) -> NumberForms:
        from ._language_pack import phrases
        from ._number_forms import BY_SLASHES, LOCAL_PHONE, NumberForms, currencies

        return NumberForms(
            currencies=currencies(
                ("€ EUR euros euro", "un euro", "euros", "un céntimo", "céntimos"),
                ("$ USD dólares dólar", "un dólar", "dólares", "un centavo", "centavos"),
                ("£ GBP libras libra", "una libra", "libras", "un penique", "peniques"),
            ),
            joint=" con ",
            months=phrases(
                "enero, febrero, marzo, abril, mayo, junio, julio, "
                "agosto, septiembre, octubre, noviembre, diciembre"
            ),
            date="{day} de {month} de {year}",
            numeric_date=BY_SLASHES,
            phone=LOCAL_PHONE,
            plus="más",
            scales="mil|millones|millón",
            of=" de ",
        )

    @cached_property
    def line(self) -> LinePhrases:
        from ._language_pack import listed
        from ._line_phrases import LinePhrases

        return LinePhrases(
            **listed(
                keys="""
                cero, uno un, dos, tres, cuatro, cinco, seis, siete, ocho, nueve, asterisco
                estrella, almohadilla numeral gato
                """,
                voicemail="""
                después del tono, después de la señal, después del pitido, después del bip, al oír
                la señal, al escuchar el tono, tras la señal, tras el tono, deje su mensaje, deja
                tu mensaje, deje un mensaje, deja un mensaje, dejar su mensaje, dejar un mensaje,
                deje su nombre, deja tu nombre, dejarnos, déjame, déjenos, grabe su mensaje, buzón
                de voz, correo de voz, contestador, contestadora, no está disponible, no estoy
                disponible, no está libre, no estamos disponibles, no disponible, no puedo
                atender, no podemos atender, no puede atender, no puedo contestar, no puede
                contestar, nadie ~ libre, nadie está disponible, se encuentra ocupada, no se
                encuentra, llamaré, devolveré la llamada, devolveremos, en este momento no, ahora
                mismo no
                """,
                menu="""
                marque #, presione #, pulse #, oprima #, teclee #, digite #, marque el, presione
                el, pulse el, marque la, presione la, pulse la, marcar el, presione las, marque
                las, tecla de, la tecla, diga o marque, ingrese, introduzca, introdusca, entre un
                número, las siguientes opciones, siguientes opciones, menú principal, opciones
                principales, el número de extensión, su extensión, # para ~ # para
                """,
                screening="""
                después del tono ~ diga su nombre, después de la señal ~ diga su nombre,
                diga su nombre, indique su nombre, di tu nombre, grabe su nombre, su nombre y el
                motivo, nombre y motivo, motivo de la llamada, motivo de su llamada, por qué
                llama, de parte de quién por favor, filtrado de llamadas, filtra las llamadas, no
                acepta llamadas, llamadas no identificadas, ver si ~ disponible, persona esperando
                que se llama
                """,
                waiting="""
                por favor espere, espere por favor, espere mientras, espere en la línea,
                permanezca en la línea, no cuelgue, tiempo de espera, en espera, próximo
                representante, se encuentran ocupados, le atenderemos, primera en línea, usted es
                el cliente número, por su paciencia, enlazar su llamada, manténgase en
                """,
                person="""
                en qué puedo ayudar, en qué le puedo, puedo ayudarle, cómo puedo ayudar, quién
                habla, quién es, quién llama, con quién hablo, sí dígame, me escucha, me oye, qué
                desea, soy yo
                """,
            )
        )


LANGUAGE = Spanish()
