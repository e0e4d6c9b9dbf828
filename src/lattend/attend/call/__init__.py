"""What one call of attention asks for: options, checked inputs, and the AttentionCall made of them."""
