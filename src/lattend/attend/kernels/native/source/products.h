// The three products of attention on a tile of 16 queries. Scores stand keys first, [keys][16].

#pragma once

#include <utility>

#include "vectors.h"

namespace {

constexpr int ROWS = 16;             // queries of a tile
constexpr int ACROSS = ROWS / LANES;  // vectors of queries
constexpr int AT_ONCE = LANES == 16 ? 8 : LANES == 8 ? 4 : 2;  // keys whose scores stay in registers
constexpr int HALF = ROWS / 2, HALF_LANES = LANES < HALF ? LANES : HALF, HALF_ACROSS = HALF / HALF_LANES;
constexpr int BLOCK_ROWS = 4, BLOCK_VECTORS = LANES == 16 ? 4 : 2;  // sums that do

typedef float HalfFloats __attribute__((vector_size(HALF_LANES * 4)));

// The queries that attend to any of some keys.
template <int KEYS>
inline uint16_t bits_of_any(const uint16_t *bits) {
  uint16_t some = 0;
  UNROLLED for (int j = 0; j < KEYS; j++) some |= bits[j];
  return some;
}

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

// The scores of AT_ONCE keys and the queries of ACROSS_HERE vectors.
template <class Vector, int ACROSS_HERE>
inline void score_block(const float *const *keys, const float *queries, int64_t dims, float *scores) {
  constexpr int WIDTH = sizeof(Vector) / sizeof(float);
  typedef Vector Anywhere __attribute__((aligned(4), may_alias));
  const float *key[AT_ONCE];
  Vector sum[AT_ONCE][ACROSS_HERE];
  UNROLLED for (int j = 0; j < AT_ONCE; j++) {
    key[j] = keys[j];
    UNROLLED for (int a = 0; a < ACROSS_HERE; a++) sum[j][a] = Vector{};
  }
  for (int64_t d = 0; d < dims; d++) {
    Vector query[ACROSS_HERE];
    UNROLLED for (int a = 0; a < ACROSS_HERE; a++)
      query[a] = *reinterpret_cast<const Anywhere *>(queries + d * ROWS + a * WIDTH);
    UNROLLED for (int j = 0; j < AT_ONCE; j++) {
      Vector number = key[j][d] - Vector{};
      UNROLLED for (int a = 0; a < ACROSS_HERE; a++) sum[j][a] += number * query[a];
    }
  }
  UNROLLED for (int j = 0; j < AT_ONCE; j++)
    UNROLLED for (int a = 0; a < ACROSS_HERE; a++)
      *reinterpret_cast<Anywhere *>(scores + j * ROWS + a * WIDTH) = sum[j][a];
}

// scores[key][query] = keys[key] · queries[:, query]; `count` is rounded up to AT_ONCE. Where none of some
// keys is attended by the first or the last eight queries, their scores are not computed. Between
// blocks of keys it fetches rows that are needed later.
template <class Rows>
inline void scores_of(const float *const *keys, const uint16_t *bits, int64_t count, const float *queries,
                      int64_t dims, float *scores, Rows &ahead) {
  for (int64_t first = 0; first < count; first += AT_ONCE) {
    float *to = scores + first * ROWS;
    uint16_t some = bits_of_any<AT_ONCE>(bits + first);
    if (!(some >> HALF))
      score_block<HalfFloats, HALF_ACROSS>(keys + first, queries, dims, to);
    else if (!(some & ((1 << HALF) - 1)))
      score_block<HalfFloats, HALF_ACROSS>(keys + first, queries + HALF, dims, to + HALF);
    else
      score_block<Floats, ACROSS>(keys + first, queries, dims, to);
    ahead.fetch();
  }
}

// A row, or zeros where the bit of a query says that it does not attend: times a weight of 0, a NaN would remain.
inline Floats where_bit(Floats row, uint32_t bits, int query) {
  return (Floats)((Ints)row & all(-int32_t(bits >> query & 1)));
}

template <int VECTORS, bool CAREFUL>
inline void gather_columns(const float *weights, const uint16_t *bits, const float *const *rows, int64_t count,
                           int64_t column, int64_t width, float *sums) {
  constexpr int QUERIES = BLOCK_ROWS * (BLOCK_VECTORS / VECTORS);
  for (int first = 0; first < ROWS; first += QUERIES) {
    const uint16_t mine = ((1 << QUERIES) - 1) << first;
    int64_t begin = 0, end = count;
    while (begin < end && !(bits[begin] & mine)) begin++;
    while (begin < end && !(bits[end - 1] & mine)) end--;
    Floats sum[QUERIES][VECTORS];
    UNROLLED for (int i = 0; i < QUERIES; i++)
      UNROLLED for (int v = 0; v < VECTORS; v++) sum[i][v] = load(sums + (first + i) * width + column + v * LANES);
    for (int64_t k = begin; k < end; k++) {
      Floats row[VECTORS];
      UNROLLED for (int v = 0; v < VECTORS; v++) row[v] = load(rows[k] + column + v * LANES);
      UNROLLED for (int i = 0; i < QUERIES; i++) {
        Floats weight = all(weights[k * ROWS + first + i]);
        UNROLLED for (int v = 0; v < VECTORS; v++)
          sum[i][v] += weight * (CAREFUL ? where_bit(row[v], bits[k], first + i) : row[v]);
      }
    }
    UNROLLED for (int i = 0; i < QUERIES; i++)
      UNROLLED for (int v = 0; v < VECTORS; v++) store(sums + (first + i) * width + column + v * LANES, sum[i][v]);
  }
}

template <int KEYS, int VECTORS, bool CAREFUL>
inline void scatter_block(const float *weights, const uint16_t *bits, const float *queries, int64_t width,
                          int64_t column, float *const *sums) {
  uint32_t some = bits_of_any<KEYS>(bits);
  int begin = __builtin_ctz(some), end = 32 - __builtin_clz(some);
  Floats sum[KEYS][VECTORS];
  UNROLLED for (int j = 0; j < KEYS; j++)
    UNROLLED for (int v = 0; v < VECTORS; v++) sum[j][v] = load(sums[j] + column + v * LANES);
  for (int i = begin; i < end; i++) {
    Floats row[VECTORS];
    UNROLLED for (int v = 0; v < VECTORS; v++) row[v] = load(queries + i * width + column + v * LANES);
    UNROLLED for (int j = 0; j < KEYS; j++) {
      Floats weight = all(weights[j * ROWS + i]);
      UNROLLED for (int v = 0; v < VECTORS; v++)
        sum[j][v] += weight * (CAREFUL ? where_bit(row[v], bits[j], i) : row[v]);
    }
  }
  UNROLLED for (int j = 0; j < KEYS; j++)
    UNROLLED for (int v = 0; v < VECTORS; v++) store(sums[j] + column + v * LANES, sum[j][v]);
}

template <int VECTORS, bool CAREFUL>
inline void scatter_columns(const float *weights, const uint16_t *bits, int64_t count, const float *queries,
                            int64_t width, int64_t column, float *const *sums) {
  int64_t k = 0;
  for (; k + BLOCK_ROWS <= count; k += BLOCK_ROWS)
    scatter_block<BLOCK_ROWS, VECTORS, CAREFUL>(weights + k * ROWS, bits + k, queries, width, column, sums + k);
  for (; k < count; k++)
    scatter_block<1, VECTORS, CAREFUL>(weights + k * ROWS, bits + k, queries, width, column, sums + k);
}

// The two sums over the pairs of a tile. A pair that is not attended has a weight of 0; a careful sum leaves it out,
// so that it adds nothing even where its row holds a NaN or an infinity.

// sums[query] += sum over keys of weights[key][query] * rows[key]; a row of sums has `width` floats.
template <bool CAREFUL>
inline void gather_rows(const float *weights, const uint16_t *bits, const float *const *rows, int64_t count,
                        int64_t width, float *sums) {
  int64_t column = 0;
  for (; column + BLOCK_VECTORS * LANES <= width; column += BLOCK_VECTORS * LANES)
    gather_columns<BLOCK_VECTORS, CAREFUL>(weights, bits, rows, count, column, width, sums);
  for (; column + 2 * LANES <= width; column += 2 * LANES)
    gather_columns<2, CAREFUL>(weights, bits, rows, count, column, width, sums);
  for (; column < width; column += LANES)
    gather_columns<1, CAREFUL>(weights, bits, rows, count, column, width, sums);
}

// sums[key] += sum over queries of weights[key][query] * queries[query], rows of `width` floats.
template <bool CAREFUL>
inline void scatter_rows(const float *weights, const uint16_t *bits, int64_t count, const float *queries,
                         int64_t width, float *const *sums) {
  int64_t column = 0;
  for (; column + BLOCK_VECTORS * LANES <= width; column += BLOCK_VECTORS * LANES)
    scatter_columns<BLOCK_VECTORS, CAREFUL>(weights, bits, count, queries, width, column, sums);
  for (; column + 2 * LANES <= width; column += 2 * LANES)
    scatter_columns<2, CAREFUL>(weights, bits, count, queries, width, column, sums);
  for (; column < width; column += LANES)
    scatter_columns<1, CAREFUL>(weights, bits, count, queries, width, column, sums);
}

// Whether there is no NaN and no infinity among these, a multiple of LANES.
inline bool are_finite(const float *numbers, int64_t count) {
  Floats zeros[4] = {};  // several sums, since each addition waits for the one before
  int64_t i = 0;
  for (; i + 4 * LANES <= count; i += 4 * LANES)
    UNROLLED for (int j = 0; j < 4; j++) zeros[j] += load(numbers + i + j * LANES) * 0.0f;
  for (; i < count; i += LANES) zeros[0] += load(numbers + i) * 0.0f;
  return sum_of((zeros[0] + zeros[1]) + (zeros[2] + zeros[3])) == 0;
}

}  // namespace
