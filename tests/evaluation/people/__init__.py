"""Public recordings of people; ``README.md`` names them."""
