// The three products of attention on a tile of 16 queries. Scores stand keys first, [keys][16].

#pragma once

#include <utility>

#include "vectors.h"

namespace {

constexpr int ROWS = 16;             // queries of a tile
constexpr int ACROSS = ROWS / LANES;  // vectors of queries
constexpr int AT_ONCE = LANES == 16 ? 8 : LANES == 8 ? 4 : 2;  // keys whose scores stay in registers
constexpr int BLOCK_ROWS = 4, BLOCK_VECTORS = LANES == 16 ? 4 : 2;  // sums that do

// Lanes of a and b by their places J; those with the bit STEP change sides.
template <int STEP, int... J>
inline void exchange(Floats &a, Floats &b, std::integer_sequence<int, J...>) {
  Floats low = __builtin_shufflevector(a, b, (J & STEP ? LANES + J - STEP : J)...);
  b = __builtin_shufflevector(a, b, (J & STEP ? LANES + J : J + STEP)...);
  a = low;
}

template <int STEP>
inline void exchange_all(Floats *rows) {
  UNROLLED for (int i = 0; i < LANES; i++)
    if (!(i & STEP)) exchange<STEP>(rows[i], rows[i + STEP], std::make_integer_sequence<int, LANES>{});
  if constexpr (STEP < LANES / 2) exchange_all<STEP * 2>(rows);
}

// [16][padded dims] turned to [padded dims][16].
inline void transpose(const float *rows, int64_t dims, float *to) {
  int64_t width = padded(dims);
  for (int r = 0; r < ROWS; r += LANES)
    for (int64_t d = 0; d < width; d += LANES) {
      Floats square[LANES];
      UNROLLED for (int i = 0; i < LANES; i++) square[i] = load(rows + (r + i) * width + d);
      exchange_all<1>(square);
      UNROLLED for (int i = 0; i < LANES; i++) store(to + (d + i) * ROWS + r, square[i]);
    }
}

// scores[key][query] = keys[key] · queries[:, query]; `count` is rounded up to AT_ONCE.
inline void scores_of(const float *const *keys, int64_t count, const float *queries, int64_t dims, float *scores) {
  for (int64_t first = 0; first < count; first += AT_ONCE) {
    const float *key[AT_ONCE];
    Floats sum[AT_ONCE][ACROSS];
    UNROLLED for (int j = 0; j < AT_ONCE; j++) {
      key[j] = keys[first + j];
      UNROLLED for (int a = 0; a < ACROSS; a++) sum[j][a] = Floats{};
    }
    for (int64_t d = 0; d < dims; d++) {
      Floats query[ACROSS];
      UNROLLED for (int a = 0; a < ACROSS; a++) query[a] = load(queries + d * ROWS + a * LANES);
      UNROLLED for (int j = 0; j < AT_ONCE; j++) {
        Floats number = all(key[j][d]);
        UNROLLED for (int a = 0; a < ACROSS; a++) sum[j][a] += number * query[a];
      }
    }
    UNROLLED for (int j = 0; j < AT_ONCE; j++)
      UNROLLED for (int a = 0; a < ACROSS; a++) store(scores + (first + j) * ROWS + a * LANES, sum[j][a]);
  }
}

template <int VECTORS>
inline void gather_columns(const float *weights, const float *const *rows, int64_t count, int64_t column,
                           int64_t width, float *sums) {
  constexpr int QUERIES = BLOCK_ROWS * (BLOCK_VECTORS / VECTORS);
  for (int first = 0; first < ROWS; first += QUERIES) {
    Floats sum[QUERIES][VECTORS];
    UNROLLED for (int i = 0; i < QUERIES; i++)
      UNROLLED for (int v = 0; v < VECTORS; v++) sum[i][v] = load(sums + (first + i) * width + column + v * LANES);
    for (int64_t k = 0; k < count; k++) {
      Floats row[VECTORS];
      UNROLLED for (int v = 0; v < VECTORS; v++) row[v] = load(rows[k] + column + v * LANES);
      UNROLLED for (int i = 0; i < QUERIES; i++) {
        Floats weight = all(weights[k * ROWS + first + i]);
        UNROLLED for (int v = 0; v < VECTORS; v++) sum[i][v] += weight * row[v];
      }
    }
    UNROLLED for (int i = 0; i < QUERIES; i++)
      UNROLLED for (int v = 0; v < VECTORS; v++) store(sums + (first + i) * width + column + v * LANES, sum[i][v]);
  }
}

template <int KEYS, int VECTORS>
inline void scatter_block(const float *weights, const float *queries, int64_t width, int64_t column,
                          float *const *sums) {
  Floats sum[KEYS][VECTORS];
  UNROLLED for (int j = 0; j < KEYS; j++)
    UNROLLED for (int v = 0; v < VECTORS; v++) sum[j][v] = load(sums[j] + column + v * LANES);
  for (int i = 0; i < ROWS; i++) {
    Floats row[VECTORS];
    UNROLLED for (int v = 0; v < VECTORS; v++) row[v] = load(queries + i * width + column + v * LANES);
    UNROLLED for (int j = 0; j < KEYS; j++) {
      Floats weight = all(weights[j * ROWS + i]);
      UNROLLED for (int v = 0; v < VECTORS; v++) sum[j][v] += weight * row[v];
    }
  }
  UNROLLED for (int j = 0; j < KEYS; j++)
    UNROLLED for (int v = 0; v < VECTORS; v++) store(sums[j] + column + v * LANES, sum[j][v]);
}

template <int VECTORS>
inline void scatter_columns(const float *weights, int64_t count, const float *queries, int64_t width, int64_t column,
                            float *const *sums) {
  int64_t k = 0;
  for (; k + BLOCK_ROWS <= count; k += BLOCK_ROWS)
    scatter_block<BLOCK_ROWS, VECTORS>(weights + k * ROWS, queries, width, column, sums + k);
  for (; k < count; k++) scatter_block<1, VECTORS>(weights + k * ROWS, queries, width, column, sums + k);
}

// sums[query] += sum over keys of weights[key][query] * rows[key]; a row of sums has `width` floats.
inline void gather_rows(const float *weights, const float *const *rows, int64_t count, int64_t width, float *sums) {
  int64_t column = 0;
  for (; column + BLOCK_VECTORS * LANES <= width; column += BLOCK_VECTORS * LANES)
    gather_columns<BLOCK_VECTORS>(weights, rows, count, column, width, sums);
  for (; column + 2 * LANES <= width; column += 2 * LANES)
    gather_columns<2>(weights, rows, count, column, width, sums);
  for (; column < width; column += LANES) gather_columns<1>(weights, rows, count, column, width, sums);
}

// sums[key] += sum over queries of weights[key][query] * queries[query], rows of `width` floats.
inline void scatter_rows(const float *weights, int64_t count, const float *queries, int64_t width,
                         float *const *sums) {
  int64_t column = 0;
  for (; column + BLOCK_VECTORS * LANES <= width; column += BLOCK_VECTORS * LANES)
    scatter_columns<BLOCK_VECTORS>(weights, count, queries, width, column, sums);
  for (; column + 2 * LANES <= width; column += 2 * LANES)
    scatter_columns<2>(weights, count, queries, width, column, sums);
  for (; column < width; column += LANES) scatter_columns<1>(weights, count, queries, width, column, sums);
}

}  // namespace
