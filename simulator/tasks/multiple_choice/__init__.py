"""Multiple choice: which of several continuations a language model finds most likely."""
