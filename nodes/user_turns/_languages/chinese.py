"""The language pack of Chinese: acknowledgements, interruptions, unfinished words, noises."""

from __future__ import annotations

from .._language_packs import LanguagePack, phrases

CHINESE = LanguagePack(
    "zh",
    acknowledgements=phrases(
        """
        嗯, 嗯嗯, 哦, 噢, 喔, 啊, 唔, 对, 對, 是, 是的, 对的, 對的, 没错, 沒錯, 好, 好的, 好啊,
        行, 可以, 明白, 明白了, 知道, 知道了, 了解, 当然, 當然, 原来如此, 原來如此, 这样啊,
        這樣啊, ok, okay
        """
    ),
    interruptions=phrases(
        """
        停, 停下, 停止, 等等, 等一下, 等一等, 等会, 等會, 慢着, 慢著, 别说了, 別說了, 不要说了,
        不要說了, 安静, 安靜, 闭嘴, 閉嘴, 打断一下, 打斷一下, 取消, 算了, 够了, 夠了, 不不
        """
    ),
    unfinished=phrases(
        """
        和, 跟, 或者, 还是, 但是, 因为, 如果, 所以, 而且, 然后, 还有, 我想, 我想要, 我要, 我们要,
        我需要, 我们需要, 请给我, 给我, 请问, 我觉得, 我认为, 就是说, 那个, 这个嘛, 呃, 嗯我,
        我叫, 我的名字是, 电话是, 地址是, 从, 在, 把, 对于, 关于
        """
    ),
    unfinished_statements=(
        "你们有",
        "有没有",
        "我有",
    ),
    question_words=phrases(
        """
        什么, 哪, 谁, 怎么, 为什么, 几, 多少
        """
    ),
    numbers=phrases(
        """
        零, 一, 二, 两, 三, 四, 五, 六, 七, 八, 九, 十, 百
        """
    ),
    articles=phrases(
        """
        一杯, 两杯, 三杯, 一个, 两个, 一份, 两份
        """
    ),
    adjectives=phrases(
        """
        大, 小, 热, 冰, 新
        """
    ),
    short_answers=phrases(
        """
        是, 不, 不是, 没有
        """
    ),
    noises=phrases(
        """
        哈, 哈哈, 嘿嘿, 呵呵, 阿嚏, 唉
        """
    ),
)
