// The fields of the state that say which call of attention is planned.
export const CALL = ["rule", "numbers", "device", "dtype", "head_dim", "heads", "kv_heads", "batch", "kernel"] as const;
