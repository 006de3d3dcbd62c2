"""Sound as numbers: PCM16, resampling, G.711 and fades, the same for voices, wires and recordings.

numpy and soxr are extras, imported by what needs them.
"""
