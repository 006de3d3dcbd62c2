"""The café's grammar: words, then phrases, then clauses, then changes to an order.

`lexicon` has the phrases, `words` finds them in a text, `phrases` combines them into things like
"two large lattes", `clauses` separates what is wanted from what is not, `ellipsis` completes what
was left out, `references` finds the lines that are meant, and `changes` changes them.
"""

from .menu import Line as Line
from .menu import Order as Order
from .order_taker import OrderTaker as OrderTaker
from .references import Reading as Reading

__all__ = ["Line", "Order", "OrderTaker", "Reading"]
