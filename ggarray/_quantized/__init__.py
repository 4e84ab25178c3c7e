"""Block-quantized dtypes: their traits, their values, reference conversions, and GGUF files."""
