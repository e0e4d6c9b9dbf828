// What happens to the scores of a tile before they are weights: a softcap, and a bias that is read from memory.

#pragma once

#include "tiles.h"

namespace {

// The hyperbolic tangent within 2e-7 of it; NaN of NaN.
inline Floats tanh_of(Floats x) {
  Floats size = x < 0.0f ? -x : x, square = x * x;
  Floats small = all(2.18694885e-2f);
  small = small * square - 5.39682540e-2f;
  small = small * square + 1.33333333e-1f;
  small = small * square - 3.33333333e-1f;
  small = x + x * (small * square);
  Floats low = exp2_of(size * (-2 * LOG2E));
  Floats large = (1.0f - low) / (1.0f + low);
  return size < 0.25f ? small : x < 0.0f ? -large : large;
}

// Scores become softcap * tanh(score / softcap); `softened`, if any, what that is multiplied with to differentiate.
inline void soften(const Call &call, const Keys &keys, float *scores, float *softened) {
  float cap = float(call.layout.softcap), share = float(1 / call.layout.softcap);
  for (int64_t i = 0; i < keys.count * ROWS; i += LANES) {
    Floats bent = tanh_of(load(scores + i) * share);
    store(scores + i, bent * cap);
    if (softened) store(softened + i, 1.0f - bent * bent);
  }
}

inline void soften_slopes(const Keys &keys, float *slopes, const float *softened) {
  for (int64_t j = 0; j < keys.count; j++)
    UNROLLED for (int a = 0; a < ACROSS; a++) {
      int64_t at = j * ROWS + a * LANES;
      store(slopes + at, load(slopes + at) * where_attended(load(softened + at), keys.bits[j], a, 0.0f));
    }
}

// Whether the keys follow each other.
inline bool in_a_row(const Keys &keys) { return keys.position[keys.count - 1] - keys.position[0] == keys.count - 1; }

inline void add_bias(const Call &call, Scratch &s, int64_t b, int64_t h, const Tile &tile) {
  const Keys &keys = s.keys;
  const int64_t *by = call.layout.bias, width = padded(keys.count);
  const int32_t *offsets = call.lists.query_offsets + tile.query_shape * ROWS;
  const float *from = call.bias + b * by[0] + h * by[1];
  bool together = by[3] == 1 && in_a_row(keys);
  for (int r = 0; r < ROWS; r++) {
    const float *row = from + (tile.query_base + offsets[r]) * by[2];
    float *to = s.biases + r * width;
    if (together)
      memcpy(to, row + keys.position[0], keys.count * sizeof(float));
    else
      for (int64_t j = 0; j < keys.count; j++) to[j] = row[keys.position[j] * by[3]];
  }
  transpose(s.biases, keys.count, s.bias_columns);
  for (int64_t i = 0; i < keys.count * ROWS; i += LANES)
    store(s.scores + i, load(s.scores + i) + load(s.bias_columns + i));
}

// Adds the slopes of a tile's scores to those of all pairs: a pair is in one tile, which is of one thread.
inline void write_slopes(const Call &call, Scratch &s, int64_t b, int64_t h, const Tile &tile) {
  const Layout &layout = call.layout;
  const Keys &keys = s.keys;
  const int32_t *offsets = call.lists.query_offsets + tile.query_shape * ROWS;
  float *member = call.bias_slopes + (b * layout.heads + h) * layout.queries * layout.keys;
  for (int64_t r = 0; r < call.lists.query_counts[tile.query_shape]; r++) {
    float *to = member + (tile.query_base + offsets[r]) * layout.keys;
    for (int64_t j = 0; j < keys.count; j++) to[keys.position[j]] += s.slopes[j * ROWS + r];
  }
}

}  // namespace
