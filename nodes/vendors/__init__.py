"""One folder a vendor: its ear, voice and models, what its errors mean, and its fake."""
