"""One call of attention: its options, its checked inputs, and the AttentionCall made of them."""
