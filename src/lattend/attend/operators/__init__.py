"""Attention as operators of torch: what torch.compile, torch.func and torch.export see."""
