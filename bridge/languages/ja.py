"""Japanese."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ._language import Language

if TYPE_CHECKING:
    from ._answer_phrases import AnswerPhrases
    from ._language_pack import LanguagePack


class Japanese(Language):
    tag = "ja"

    fillers = (
        "少々お待ちください。",
        "まだ処理中です。もうしばらくお待ちください。",
    )
    apology = "申し訳ありません、うまくいきませんでした。もう一度おっしゃっていただけますか。"
    in_background = "もう少し時間がかかります。終わり次第お知らせします。"
    not_understood = (
        "すみません、聞き取れませんでした。",
        "すみません、聞き取れませんでした。",
        "お声がよく聞き取れません。お話しできるときにお話しください。",
    )

    @cached_property
    def turn_taking(self) -> LanguagePack:
        from ._language_pack import LanguagePack, listed

        return LanguagePack(
            "ja",
            **listed(
                acknowledgements="""
                うん, うんうん, ええ, はい, はいはい, へえ, へー, ふーん, ほう, ああ, あー, えー,
                おお, んー, そう, そうそう, そうですか, そうですね, そうなんだ, そうなんですか,
                なるほど, なるほどね, たしかに, 確かに, わかりました, 分かりました, わかった,
                分かった, 了解, 了解です, 承知しました, もちろん, いいですね, オーケー, オッケー,
                ok
                """,
                interruptions="""
                止めて, とめて, やめて, ストップ, 待って, まって, お待ちください, ちょっといい,
                静かに, しずかに, 黙って, だまって, すみません, キャンセル, 取り消し, もういい,
                違います, ちがいます
                """,
                unfinished="""
                を, は, が, に, で, も, えっと, ええと, えーと, あの, その, それで, そして, でも,
                だから, だけど, または, それとも, もし, なぜなら, 一つの, 私の, 名前は, 電話番号は,
                住所は, 大きな, 小さな, この
                """,
                unfinished_statements="と",
                question_words="何, なに, どこ, いつ, 誰, だれ, どう, なぜ, いくら, どの, どれ",
                numbers="""
                ゼロ, 一, 二, 三, 四, 五, 六, 七, 八, 九, 十, いち, に, さん, よん, ご, ろく, なな,
                はち, きゅう, じゅう, 百, れい
                """,
                short_answers="いいえ, いや",
                noises="はは, ははは, ふふ, へへ, くしゅん, はくしょん",
            ),
        )

    @cached_property
    def choices(self) -> AnswerPhrases:
        from ._answer_phrases import AnswerPhrases
        from ._language_pack import listed

        return AnswerPhrases(
            **listed(
                never_mind="""
                キャンセル, やめて, やめます, もういい, もういいです, 取り消し, 取り消して,
                結構です, ストップ, なんでもない, 何でもないです
                """,
                polite="""
                ああ, あ, えっと, すみません, ありがとう, ありがとうございます, いや, はい, じゃあ,
                お, 願, い, し, ま, す
                """,
                fillers="""
                番, 目, つ, の, で, を, が, は, に, お, 願, い, し, ま, す, それ, これ, えっと,
                じゃあ, だ, 号, 選, び
                """,
                numbers="一, 二, 三, 四, 五, 六, 七, 八, 九, 十",
                alternatives="か",
                yes="""
                はい, はいはい, ええ, うん, そう, そうです, そうそう, その通りです, 正しいです,
                合っています, もちろん, お願いします, いいです, いいですよ, 大丈夫です, 了解,
                了解です, オーケー, 間違いない, ok
                """,
                no="""
                いいえ, いや, いえ, 違う, 違います, ちがいます, ちがう, だめ, だめです,
                そうじゃない, そうではありません, 間違っています, よくない, 正しくない
                """,
                unsure="""
                わからない, 分からない, わかりません, 分かりません, 知りません, ちょっと待って,
                待って, お待ちください, どちらでも, どっちでも, どちらでもいい, どちらでもいいです,
                さあ
                """,
                neutral="""
                問題ない, 問題ありません, かまいません, 構いません, 気にしないで, 急いでいません,
                悪くない, どういたしまして
                """,
            )
        )


LANGUAGE = Japanese()
