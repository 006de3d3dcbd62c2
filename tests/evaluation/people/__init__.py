"""Turn taking on recordings of people, in virtual time; ``README.md`` describes the folder."""
