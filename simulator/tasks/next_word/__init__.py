"""Next word: whether a language model would write a passage's last word, as in LAMBADA."""
