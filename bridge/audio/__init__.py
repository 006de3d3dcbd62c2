"""Sound as numbers, for voices, wires and recordings: PCM16, resampling, G.711 and fades.

numpy and soxr are extras, imported by what needs them.
"""
