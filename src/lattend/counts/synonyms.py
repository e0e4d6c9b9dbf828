"""Synonyms: names that papers and code use for the same quantity."""

from __future__ import annotations

from collections.abc import Collection

# Each line is one meaning, what a letter means most often first; the count's own name is among them
_MEANINGS = tuple(
    frozenset(line.split())
    for line in (
        "n N T L S seq_len seqlen seq_length sequence_length length tokens n_tokens num_tokens T_x N_x",
        "m M S n_keys num_keys kv_len source_length T_kv N_kv",
        "n N side rows cols height width H W size image_size n_x n_y",
        "heads N_h n_h H h n_head n_heads num_heads nhead nheads N_heads N_head attention_heads",
        "D_hid D_h D_k D_q d_h d_k d_q d_head D_head head_dim d_hid d_hidden D_hidden hidden_dim d_qk",
        "D_i D_in D_x D_X D_model d_i d_in d_x d_model d D E d_embed embed_dim hidden_size n_embd",
        "D_o D_v d_o d_v d_value value_dim v_dim",
        "D_out d_out D_output d_output out_features output_dim",
        "h H hidden hidden_size n_hidden d_h D_h d_hidden d_hid units neurons d",
        "c C channels in_channels c_in C_in n_channels d_x inputs input_size",
        "c_out C_out out_channels filters n_filters",
        "t T w W window window_size sliding_window r radius left_context",
        "t T steps timesteps time n_steps seq_len length n",
        "w W window window_size block block_size chunk chunk_size b B l",
        "k K kernel kernel_size filter_size",
        "l L layers n_layers num_layers n_layer depth",
        "q i j x query position pos",
        "k j i y key",
    )
)


def meant(name: str, known: Collection[str]) -> list[str]:
    """Returns known names of the same meaning or another spelling: N_h for heads, Dhid for D_hid.

    >>> meant("N_h", ("n", "heads", "D_i")), meant("d_in", ("n", "heads", "D_i"))
    (['heads'], ['D_i'])
    """
    alike = [other for other in known if _plain(other) == _plain(name)]
    if alike:
        return alike
    alternatives = (
        [other for other in known if other in meaning] for meaning in _MEANINGS if name in meaning
    )
    return next((names for names in alternatives if names), list[str]())


def spellings(known: Collection[str]) -> set[str]:
    """Returns the names of several letters that mean one of the known names."""
    return {name for meaning in _MEANINGS if meaning & {*known} for name in meaning if len(name) > 1}


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
