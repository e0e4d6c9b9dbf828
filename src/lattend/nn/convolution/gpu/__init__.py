"""Hard heads on a GPU: each head's one key is gathered inside the product, and no copy of keys is made."""
