"""What the café understands: words, then phrases, then clauses, then changes of an order.

`lexicon` has the phrases, `words` finds them in a text, `phrases` puts them together to things like
"two large lattes", `clauses` tells what is wanted from what is not, `ellipsis` completes what was
left out, `references` finds the lines that are meant, and `changes` changes them.
"""

from .menu import Line as Line
from .menu import Order as Order
from .references import Reading as Reading
from .taking import OrderTaker as OrderTaker

__all__ = ["Line", "Order", "OrderTaker", "Reading"]
