"""The language pack of Japanese: acknowledgements, interruptions, unfinished words, noises."""

from __future__ import annotations

from .._language_packs import LanguagePack, phrases

JAPANESE = LanguagePack(
    "ja",
    acknowledgements=phrases(
        """
        うん, うんうん, ええ, はい, はいはい, へえ, へー, ふーん, ほう, ああ, あー, えー, おお,
        んー, そう, そうそう, そうですか, そうですね, そうなんだ, そうなんですか, なるほど,
        なるほどね, たしかに, 確かに, わかりました, 分かりました, わかった, 分かった, 了解,
        了解です, 承知しました, もちろん, いいですね, オーケー, オッケー, ok
        """
    ),
    interruptions=phrases(
        """
        止めて, とめて, やめて, ストップ, 待って, まって, お待ちください, ちょっといい, 静かに,
        しずかに, 黙って, だまって, すみません, キャンセル, 取り消し, もういい, 違います,
        ちがいます
        """
    ),
    unfinished=phrases(
        """
        を, は, が, に, で, も, えっと, ええと, えーと, あの, その, それで, そして, でも, だから,
        だけど, または, それとも, もし, なぜなら, 一つの, 私の, 名前は, 電話番号は, 住所は,
        大きな, 小さな, この
        """
    ),
    unfinished_statements=("と",),
    question_words=phrases(
        """
        何, なに, どこ, いつ, 誰, だれ, どう, なぜ, いくら, どの, どれ
        """
    ),
    numbers=phrases(
        """
        ゼロ, 一, 二, 三, 四, 五, 六, 七, 八, 九, 十, いち, に, さん, よん, ご, ろく, なな, はち,
        きゅう, じゅう, 百, れい
        """
    ),
    short_answers=(
        "いいえ",
        "いや",
    ),
    noises=phrases(
        """
        はは, ははは, ふふ, へへ, くしゅん, はくしょん
        """
    ),
)
