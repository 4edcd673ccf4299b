"""llama.cpp through llama-cpp-python: GGUF files."""
