"""What texts mean to turn taking: acknowledgements, hesitations, unfinished phrases, echoes."""

from __future__ import annotations

import pytest

from bargein.bridge.languages import language as language_of
from bargein.bridge.languages import normalized, tags, words_of
from bargein.nodes.user_turns._barge_in import similarity
from bargein.user_turns import LanguagePack, TurnSettings


def phrases(*languages: str):
    return TurnSettings(languages=languages or ("en",)).phrases


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Mm-hmm.", "mm hmm"),
        ("  That's   IT! ", "thats it"),
        ("Ça suffit", "ca suffit"),
        ("Straße", "strasse"),
        ("¡Alto!", "alto"),
        ("等一下", "等 一 下"),
        ("待ってください。", "待 っ て く だ さ い"),
        ("ストップ", "ス ト ッ プ"),
        ("ダメ", "ダ メ"),
        ("ok、好的", "ok 好 的"),
        ("…", ""),
    ],
)
def test_text_is_compared_without_case_accents_and_punctuation(text, words):
    """Comparison knows words only; characters stand apart where a script has no spaces."""
    assert normalized(text) == words
    assert words_of(text) == tuple(words.split())


@pytest.mark.parametrize(
    "text",
    [
        "mhm",
        "Mm-hmm.",
        "Okay, right.",
        "Yeah. Yeah, yeah.",
        "Uh-huh, I see.",
        "All right, sounds good",
        "OK",
    ],
)
def test_acknowledgements_alone_combined_or_repeated(text):
    """Nothing but acknowledgements is an acknowledgement, however many they are."""
    assert phrases().is_acknowledgement(text)


@pytest.mark.parametrize(
    "text", ["", "…", "okay stop", "right there", "I see a cat", "yeah but no", "okra", "seen"]
)
def test_anything_else_is_none(text):
    """Text with another word, or without words, is not an acknowledgement."""
    assert not phrases().is_acknowledgement(text)


@pytest.mark.parametrize(
    ("text", "may"),
    [("I", True), ("okay, got", True), ("of", True), ("", True), ("okay", True), ("a", False)],
)
def test_words_that_may_become_an_acknowledgement(text, may):
    """The beginning of an acknowledgement does not count as another word yet."""
    assert phrases().may_become_acknowledgement(text) is may


@pytest.mark.parametrize(
    "text",
    ["stop", "STOP!", "okay, stop it please", "could you hold on for me", "No, no.", "wait wait"],
)
def test_an_interruption_phrase_counts_wherever_it_stands(text):
    """A phrase within longer words interrupts."""
    assert phrases().asks_to_stop(text)


@pytest.mark.parametrize("text", ["", "nonstop", "a stopover", "waiter", "hold the onions on"])
def test_parts_of_words_do_not_interrupt(text):
    """Only whole words count, and those of a phrase stand together."""
    assert not phrases().asks_to_stop(text)


@pytest.mark.parametrize(
    ("language", "acknowledgement", "halt", "neither"),
    [
        ("de", "Ja, genau so. Alles klar!", "Moment mal bitte", "einen großen Kaffee"),
        ("de", "achso, ja", "HÖR AUF damit", "halte das fest"),
        ("fr", "D’accord, très bien", "attendez, s'il vous plaît", "un grand café"),  # noqa: RUF001 - as recognisers write it
        ("fr", "Ah bon? Oui oui.", "tais toi", "le monument"),
        ("es", "Sí, sí, de acuerdo", "¡Espere! Un momento", "un café para mí"),
        ("es", "ajá, claro que si", "callate ya", "la bastante grande"),
        ("pl", "Tak, tak, rozumiem.", "Proszę poczekać!", "dużą kawę"),
        ("zh", "嗯，好的", "请等一下", "我要一杯咖啡"),  # noqa: RUF001 - as recognisers write it
        ("zh", "對對，沒錯", "別說了", "我想要茶"),  # noqa: RUF001 - as recognisers write it
        ("ja", "はい、なるほど", "ちょっと待ってください", "コーヒーをひとつ"),
        ("ja", "うんうん、そうですね。", "もうストップ", "紅茶がいい"),
    ],
)
def test_every_language(language, acknowledgement, halt, neither):
    """Each pack knows its acknowledgements and interruption phrases, and leaves the rest alone."""
    found = phrases(language)
    assert found.is_acknowledgement(acknowledgement)
    assert not found.asks_to_stop(acknowledgement)
    assert found.asks_to_stop(halt)
    assert not found.is_acknowledgement(halt)
    assert not found.is_acknowledgement(neither)
    assert not found.asks_to_stop(neither)


PACKS = [pack for tag in tags() if (pack := language_of(tag).turn_taking) is not None]


@pytest.mark.parametrize("pack", PACKS, ids=[pack.name for pack in PACKS])
def test_no_phrase_is_both(pack):
    """No acknowledgement of a pack asks for silence, and no interruption phrase acknowledges."""
    found = phrases(pack.name)
    assert len(pack.acknowledgements) >= 20
    assert len(pack.interruptions) >= 15
    assert not [p for p in pack.acknowledgements if found.asks_to_stop(p)]
    assert not [p for p in pack.interruptions if found.is_acknowledgement(p)]


@pytest.mark.parametrize(
    ("text", "is_noise"),
    [
        ("Ha, ha, ha,", True), ("Hahahahahaha", True), ("EH EH EHH", True), ("AHH! AHH!", True),
        ("T-T-T-t-t-T-", True), ("S...", True), ("pfft", True), ("Oh. Ugh.", True),
        ("H-h-h-heh-he", True), ("H E E E E", True), ("H E", False), ("H-H", False),
        ("Ehehe", True), ("Ee-e-e", True), ("Ee Ee E E E E", True), ("Euh", True), ("ooh", True),
        ("E E", False), ("E", False), ("2 2 2", False), ("he", False), ("eau", False),
        ("Höhe", False), ("\u4e0d \u4e0d \u4e0d", False),
        ("Oh.", False), ("B", False), ("T.", False), ("Haha, stop", False), ("a mocha", False),
        ("banana", False), ("777", False), ("two two two", False), ("", False),
    ],
)  # fmt: skip
def test_noises_are_no_words(text, is_noise):
    """Laughs, coughs, groans and letters that break off; letters and numbers are words."""
    assert phrases("en").is_noise(text) is is_noise


@pytest.mark.parametrize(
    ("language", "text"),
    [("en", "Two."), ("en", "No, no"), ("en", "4 9"), ("de", "Nein"), ("fr", "Deux"), ("es", "Sí"),
     ("zh", "三"), ("ja", "いいえ")],
)  # fmt: skip
def test_short_answers_are_known_in_every_language(language, text):
    """Numbers and "no", as words and as figures; a name is none."""
    assert phrases(language).is_short_answer(text)
    assert not phrases(language).is_short_answer("Emma")
    assert not phrases(language).is_short_answer("")


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("four", True), ("4", True), ("4-7-9", True), ("my code is B T", True), ("A B 4", True),
        ("it is four nine", True), ("four nine please", False), ("a table for four", False),
        ("I take two", False), ("", False), ("yes", False),
    ],
)  # fmt: skip
def test_figures_and_letters_are_spelling(text, spelling):
    """They are the whole text, or the last two words of it."""
    assert phrases("en").is_spelling(text) is spelling


def test_spelling_in_other_languages():
    """Figures are known in each; a script without spaces has no letters to spell with."""
    assert phrases("de").is_spelling("vier neun")
    assert phrases("zh").is_spelling("三四")
    assert not phrases("zh").is_spelling("三点")
    assert not phrases("ja").is_spelling("はい")


@pytest.mark.parametrize(
    ("text", "wants"),
    [
        ("a large", True), ("Give me two small", True), ("large", False), ("a latte", False),
        ("Can I get a double shot, dark", True), ("a latte with almond", True),
        ("May I have a 16 ounce", True), ("a two hour", True), ("in an hour", False),
        ("I have one hour", False), ("The coffee is cold", False), ("my coffee was too hot", False),
    ],
)  # fmt: skip
def test_an_adjective_or_a_measure_may_want_a_noun(text, wants):
    """One behind an article does, unless a verb stands between; alone it may be the answer."""
    assert phrases("en").wants_noun(text) is wants


@pytest.mark.parametrize(
    ("language", "text", "over"),
    [
        ("de", "Ich nehme einen Kaffee mit einer kleinen", "Der Kaffee ist zu heiß"),
        ("fr", "Je prends un café et une petite", "Le café est trop petit"),
        ("es", "Quisiera un café y un buen", "El vaso es muy pequeño"),
        ("zh", "我要一杯大", "太大"),
    ],
)
def test_adjectives_want_nouns_in_other_languages(language, text, over):
    """Where adjectives stand before their nouns, they do not end a sentence."""
    assert phrases(language).wants_noun(text)
    assert not phrases(language).wants_noun(over)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("fr", "Je voudrais un café double"), ("fr", "Un café long"),
        ("es", "Un café pequeño"), ("es", "Quiero una camisa nueva"),
        ("zh", "今天一直很热"), ("zh", "第一杯太冰"),
    ],
)  # fmt: skip
def test_an_adjective_behind_its_noun_ends_a_sentence(language, text):
    """Where adjectives follow nouns, an article further back says nothing."""
    assert not phrases(language).wants_noun(text)


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        ("I would like a mocha with whole milk", True),
        ("I would like a mocha.", False),
        ("Where is it?", False),
        ("Wo ist es\uff1f", False),
        ("i would like a mocha", False),
        ("4 5 2", False),
        ("\u6211\u8981\u5496\u5561", False),
        ("", False),
    ],
)
def test_a_sentence_may_lack_its_full_stop(text, lacks):
    """Only one that begins with a capital letter: its recogniser writes full stops."""
    assert phrases("en").lacks_stop(text) is lacks


def test_answers_are_acknowledgements_and_short_answers():
    """A number may continue, so it is not a complete answer."""
    english = phrases("en")
    assert [english.is_answer(text) for text in ("yes", "no", "okay", "Yes, no")] == [True] * 4
    assert [english.is_answer(text) for text in ("four", "a tea", "")] == [False] * 3


def test_several_languages_at_once():
    """A caller may mix the languages that are named."""
    assert phrases("en", "de").is_acknowledgement("ja, okay, I see")
    assert not phrases("en").is_acknowledgement("ja, okay, I see")


def test_a_pack_of_ones_own():
    """A LanguagePack of the user's stands beside ours."""
    klingon = LanguagePack("tlh", acknowledgements=("HIja'", "luq"), interruptions=("mev",))
    found = TurnSettings(languages=("en", klingon)).phrases
    assert found.is_acknowledgement("luq okay")
    assert found.asks_to_stop("okay, mev!")


def test_further_phrases():
    """Settings add phrases to those of the packs."""
    settings = TurnSettings(acknowledgements=("roger",), interruption_phrases=("red light",))
    assert settings.phrases.is_acknowledgement("roger, okay")
    assert settings.phrases.asks_to_stop("that is a red light")


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "I would like a"),
        ("en", "Can I get?"),
        ("en", "Could you tell me what?"),
        ("en", "We need..."),
        ("en", "The thing is"),
        ("en", "A large latte, um"),
        ("en", "A large latte and"),
        ("en", "I come from"),
        ("en", "Hello, could you"),
        ("en", "And what is"),
        ("en", "Hello, this is"),
        ("en", "Two croissants \N{EM DASH}"),
        ("de", "Ich möchte gern"),
        ("de", "Einen großen Kaffee und"),
        ("fr", "Je voudrais un"),
        ("es", "Quisiera un"),
        ("zh", "请给我"),
        ("zh", "我想要一杯咖啡,因为"),
        ("ja", "コーヒーを"),
        ("ja", "えっと"),
    ],
)
def test_a_sentence_that_goes_on_is_unfinished(language, text):
    """It ends with words that no sentence ends with, or breaks off."""
    assert phrases(language).is_unfinished(text)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", ""),
        ("en", "..."),
        ("en", "A large latte, please."),
        ("en", "Where are you from?"),
        ("en", "What do you have?"),
        ("en", "Yes, it is."),
        ("en", "Two croissants to go."),
        ("en", "No"),
        ("en", "I do not know what it is."),
        ("en", "How much?"),
        ("en", "Yes, I can."),
        ("en", "I want to change my order."),
        ("de", "Ich rufe später an."),
        ("de", "Was haben Sie?"),
        ("fr", "Un café, s'il vous plaît."),
        ("es", "¿Qué tienen?"),
        ("zh", "一杯咖啡"),
        ("ja", "コーヒーをください"),
    ],
)
def test_a_sentence_that_may_be_over_is_not_unfinished(language, text):
    """Questions end with what statements do not; a text without words says nothing."""
    assert not phrases(language).is_unfinished(text)


def test_further_unfinished_phrases():
    """Settings add what only callers of one agent say."""
    found = TurnSettings(unfinished_phrases=("my order number",)).phrases
    assert found.is_unfinished("well, my order number")
    assert not phrases().is_unfinished("well, my order number")


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: LanguagePack("", (), ()), "is empty"),
        (lambda: LanguagePack("xx", ("...",), ()), "without a letter"),
        (lambda: LanguagePack("xx", (), "stop"), "tuple of strings"),
        (lambda: TurnSettings(languages=("xx",)), "knows de, en, .*, not 'xx'"),
        (lambda: TurnSettings(languages="en"), "tuple of names and LanguagePacks"),
        (lambda: TurnSettings(acknowledgements=("ok", "!")), "acknowledgements"),
        (lambda: TurnSettings(interruption_phrases=["stop"]), "interruption_phrases"),
        (lambda: TurnSettings(unfinished_phrases="um"), "unfinished_phrases"),
        (lambda: LanguagePack("xx", (), (), unfinished=("!",)), "unfinished="),
    ],
)
def test_wrong_phrases_fail_when_made(make, error):
    """What cannot be a phrase or a language is an error that says so."""
    with pytest.raises((TypeError, ValueError), match=error):
        make()


# --- echoes ---------------------------------------------------------------------------------------


SAYING = "Your parcel left the warehouse on Monday. It should be with you tomorrow."


@pytest.mark.parametrize(
    ("heard", "least", "most"),
    [
        ("the warehouse on Monday", 1.0, 1.0),
        ("the ware house on monday", 0.95, 1.0),
        ("parcel left a warehouse on Monday", 0.8, 0.99),
        ("it should be with you", 1.0, 1.0),
        ("where is my parcel", 0.0, 0.5),
        ("no I never got it", 0.0, 0.3),
        ("you with be should it", 0.0, 0.5),
        ("", 0.0, 0.0),
    ],
)
def test_the_share_of_what_is_being_said(heard, least, most):
    """Words in the order of the agent's count, however they are split or written."""
    assert least <= similarity(heard, SAYING) <= most


def test_nothing_is_like_silence():
    """Without words of the agent there is no echo."""
    assert similarity("hello", "") == 0.0


def test_scripts_without_spaces():
    """Characters are words there."""
    assert similarity("包裹星期一", "您的包裹星期一离开了仓库") == 1.0
