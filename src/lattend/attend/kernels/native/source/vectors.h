// Vectors of floats as wide as the processor's, rows of any dtype as floats, and 2^x.

#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX512F__)
#define LEVEL_NAME(name) name##_avx512
constexpr int LANES = 16;
#elif defined(__AVX2__)
#define LEVEL_NAME(name) name##_avx2
constexpr int LANES = 8;
#else
#define LEVEL_NAME(name) name##_plain
constexpr int LANES = 4;
#endif

#define UNROLLED _Pragma("GCC unroll 16")

namespace {

typedef float Floats __attribute__((vector_size(LANES * 4)));
typedef int32_t Ints __attribute__((vector_size(LANES * 4)));
typedef uint32_t Words __attribute__((vector_size(LANES * 4)));
typedef Floats FloatsAnywhere __attribute__((aligned(4), may_alias));

inline Floats load(const float *at) { return *reinterpret_cast<const FloatsAnywhere *>(at); }
inline void store(float *at, Floats x) { *reinterpret_cast<FloatsAnywhere *>(at) = x; }
inline Floats all(float x) { return x - Floats{}; }
inline Ints all(int32_t x) { return x - Ints{}; }
inline Floats larger(Floats a, Floats b) { return a > b ? a : b; }

constexpr int64_t padded(int64_t size) { return (size + 15) / 16 * 16; }

// The sum of all lanes, half of them added to the other half until one is left.
inline float sum_of(Floats x) {
  float part[LANES];
  store(part, x);
  UNROLLED for (int half = LANES / 2; half; half /= 2)
    UNROLLED for (int i = 0; i < half; i++) part[i] += part[i + half];
  return part[0];
}

// 2^x within 1e-7 of it; exactly 0 below -126, NaN of NaN.
inline Floats exp2_of(Floats x) {
  const Floats shift = all(12582912.0f);  // 1.5 * 2^23: adding it rounds to integers
  Floats rounded = x + shift;
  Floats f = x - (rounded - shift);  // from -1/2 to 1/2, where a polynomial of degree 6 is within 3e-9
  Floats y = all(1.54614447e-4f);
  y = y * f + 1.34004282e-3f;
  y = y * f + 9.61805668e-3f;
  y = y * f + 5.55032723e-2f;
  y = y * f + 2.40226509e-1f;
  y = y * f + 6.93147207e-1f;
  y = y * f + 1.0f;
  Words power = ((Words)rounded << 23) + 0x3f800000u;
  return x < -126.0f ? Floats{} : y * (Floats)power;
}

enum Dtype : int64_t { FLOAT32, BFLOAT16, FLOAT16 };

inline int64_t bytes_of(Dtype dtype) { return dtype == FLOAT32 ? 4 : 2; }

inline uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return bits;
}

inline float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}

inline float from_float16(uint16_t half) {
  uint32_t bits = (half & 0x7fffu) << 13, sign = (half & 0x8000u) << 16;
  float size = float_of(bits) * 0x1p112f;  // another bias of the exponent; denormals too
  uint32_t whole = bits >= 0x0f800000u ? bits | 0x7f800000u : bits_of(size);
  return float_of(whole | sign);
}

inline uint16_t to_bfloat16(float x) {
  uint32_t bits = bits_of(x);
  if (x != x) return 0x7fc0;
  return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;  // to the nearest, ties to even
}

inline uint16_t to_float16(float x) {
  uint32_t bits = bits_of(x), sign = (bits >> 16) & 0x8000u, size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return sign | 0x7e00;
  if (size >= 0x477ff000u) return sign | 0x7c00;              // 65520 and more
  if (size < 0x38800000u)                                     // below 2^-14, where steps are 2^-24
    return sign | (bits_of(float_of(size) + 0.5f) - 0x3f000000u);
  return sign | ((size - 0x38000000u + 0xfff + ((size >> 13) & 1)) >> 13);
}

// The row as floats times a factor, zeros behind it up to a whole vector.
inline void read_row(Dtype dtype, const void *row, int64_t dims, float factor, float *to) {
  if (dtype == FLOAT32) {
    const float *from = static_cast<const float *>(row);
    int64_t d = 0;
    for (; d + LANES <= dims; d += LANES) store(to + d, load(from + d) * factor);
    for (; d < dims; d++) to[d] = from[d] * factor;
  } else if (dtype == BFLOAT16) {
    const uint16_t *from = static_cast<const uint16_t *>(row);
    for (int64_t d = 0; d < dims; d++) to[d] = float_of(uint32_t(from[d]) << 16) * factor;
  } else {
    const uint16_t *from = static_cast<const uint16_t *>(row);
    for (int64_t d = 0; d < dims; d++) to[d] = from_float16(from[d]) * factor;
  }
  for (int64_t d = dims; d < padded(dims); d++) to[d] = 0.0f;
}

inline void write_row(Dtype dtype, const float *from, int64_t dims, void *row) {
  if (dtype == FLOAT32) {
    memcpy(row, from, dims * 4);
    return;
  }
  uint16_t *to = static_cast<uint16_t *>(row);
  if (dtype == BFLOAT16)
    for (int64_t d = 0; d < dims; d++) to[d] = to_bfloat16(from[d]);
  else
    for (int64_t d = 0; d < dims; d++) to[d] = to_float16(from[d]);
}

}  // namespace
